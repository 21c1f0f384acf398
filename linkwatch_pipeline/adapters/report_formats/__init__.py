"""The coverage report for people and for pipelines: HTML, Markdown, CSV, JUnit, SARIF and patch files.

What others wrote (URLs, names of files, texts of pages) is inert in each of them.
"""
