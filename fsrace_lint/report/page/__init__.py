"""The parts of the HTML page; `style.css` and `script.js` beside them are put into it as they are."""
