"""The page: one SQL file per panel (`queries/`), and the Streamlit code that renders them. Starts at `page.py`."""
