"""The script of every visit: page configuration, table of contents, and the chapter that the address names.

It lies in here and not beside pages/: a folder of that name beside the script that Streamlit runs turns on its older
page discovery, and the first visitor of a fresh server who follows a link is told that there is no such page.

A worker process imports this file under another name, and must not run it.
"""

if __name__ == "__main__":
    import sys
    from importlib import import_module

    from serving.compute.turns import page_turns
    from serving.process.background import collect_by_allocation, start_background_work
    from ui.chapter.parts import report_damaged_assets
    from ui.streamlit_internals.batched_messages import batched_messages, flush_messages
    from ui.streamlit_internals.message_filter import has_acted
    from ui.streamlit_internals.script_run import clearing_fragments, network, window_id

    try:
        turn = page_turns.turn(network(), first=not has_acted(window_id() or ""))
        with clearing_fragments(), turn, batched_messages(), report_damaged_assets():
            from ui.chapter.contents import enter  # in here: with it come the components, whose files may be damaged

            page = enter()
            if page.url_path and "ui.chapter.chapter" not in sys.modules:  # home, at "", needs none of the libraries
                flush_messages()  # the first chapter that is opened imports the libraries before it draws anything
                import_module("torch")  # whole: a thread that begins with a part may deadlock with another one
            page.run()
    finally:
        start_background_work(after=1.5)
        collect_by_allocation()
