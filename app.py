"""The door of Attention Atlas."""

from ui.contents import enter

enter().run()
