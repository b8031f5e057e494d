"""The parts of the HTML page, which includes `style.css` and `script.js` of this directory unchanged."""
