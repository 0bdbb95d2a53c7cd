"""The modules of a component in a browser, whose imports no server answers."""

from __future__ import annotations

from playwright.sync_api import Page

from viz_core.view.components import link_modules


def test_a_browser_follows_an_import_over_several_lines(page: Page) -> None:
    sources = {
        "x/main.js": 'import {\n  one,\n  two as b,\n} from "../shared/b.js";\nexport default () => one + b;\n',
        "shared/b.js": 'export { one } from "./c.js";\nexport const two = 2;\n',
        "shared/c.js": "export const one = 1;\n",
    }
    assert page.evaluate(f"(async () => ({link_modules(sources, 'x/main.js')})())()") == 3
