"""The boards of the page: one module, one template and its queries each.

`every.py` lists them. What several boards show is in `parts/`, what every board is built on in `dashboards/page/`.
"""
