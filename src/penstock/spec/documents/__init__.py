"""Documents of several files and languages as one: what holds whatever the language of a file.

`reading.py` is the file to start at. Front ends (`spec.front_end`) read single files.
"""
