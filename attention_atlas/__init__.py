"""The installed app. A wheel lays app.py, pages/, ui/ and the rest of the house in here, as they lie in a checkout.

They import each other as `ui` and `pages`, names too plain for anybody's site-packages: only the process that
`attention-atlas` starts finds them, for Streamlit puts the folder of app.py on the path.
"""
