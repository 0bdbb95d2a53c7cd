"""The installed app. A wheel has app.py, pages/, ui/ and the other folders of the app in here, as in a checkout.

They import each other as `ui` and `pages`, names too plain for site-packages: only the process that `attention-atlas`
starts finds them, because Streamlit puts the folder of app.py on the path.
"""
