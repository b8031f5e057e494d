"use strict";

(() => {
  const root = document.documentElement;
  const themes = ["auto", "light", "dark"];
  const key = "fsrace-lint-theme";
  let theme = "auto";

  function remembered() {
    try {
      return localStorage.getItem(key);
    } catch {
      return null; // browsers may deny storage to pages from the disk
    }
  }

  function dress(wanted) {
    theme = themes.includes(wanted) ? wanted : "auto";
    if (theme === "auto") {
      delete root.dataset.theme;
    } else {
      root.dataset.theme = theme;
    }
    const button = document.getElementById("theme");
    if (button) {
      button.textContent = `Theme: ${theme}`;
    }
  }

  root.classList.add("js");
  dress(remembered());

  document.addEventListener("DOMContentLoaded", () => {
    const findings = [...document.querySelectorAll(".finding")];
    const files = [...document.querySelectorAll(".file")];
    const form = document.querySelector("form");
    const search = document.getElementById("text");
    const boxes = [...document.querySelectorAll("aside input[type=checkbox]")];
    const texts = new Map();

    dress(theme);
    document.getElementById("theme").addEventListener("click", () => {
      dress(themes[(themes.indexOf(theme) + 1) % themes.length]);
      try {
        localStorage.setItem(key, theme);
      } catch {
        // the theme then applies only to this page
      }
    });

    function reveal() {
      const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
      if (!target) {
        return;
      }
      if (target.closest("[hidden]")) {
        clear();
      }
      for (let box = target.closest("details"); box; box = box.parentElement.closest("details")) {
        box.open = true;
      }
      target.scrollIntoView();
    }

    function text(finding) {
      if (!texts.has(finding)) {
        const file = finding.closest(".file").querySelector("summary").textContent;
        texts.set(finding, `${file} ${finding.textContent}`.toLowerCase());
      }
      return texts.get(finding);
    }

    function filter() {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const wanted = { rule: new Set(), severity: new Set(), evidence: new Set() };
      boxes.filter((box) => box.checked).forEach((box) => wanted[box.name].add(box.value));
      let shown = 0;
      for (const finding of findings) {
        const fits =
          Object.entries(wanted).every(([name, set]) => !set.size || set.has(finding.dataset[name])) &&
          words.every((word) => text(finding).includes(word));
        finding.hidden = !fits;
        shown += fits;
      }
      for (const file of files) {
        file.hidden = !file.querySelector(".finding:not([hidden])");
      }
      const chosen = words.length || boxes.some((box) => box.checked);
      document.getElementById("clear").disabled = !chosen;
      document.getElementById("nothing").hidden = shown > 0;
      const status = document.getElementById("shown");
      status.textContent = chosen ? `${shown} of ${findings.length} shown` : `${findings.length} shown`;
    }

    function clear() {
      search.value = "";
      boxes.forEach((box) => {
        box.checked = false;
      });
      filter();
    }

    function toggle(open) {
      // Do not draw thousands of findings at once: in a long list, expand only the files.
      const few = findings.filter((finding) => !finding.hidden).length <= 200;
      for (const box of [...files, ...(few || !open ? findings : [])]) {
        if (!box.hidden) {
          box.open = open;
        }
      }
    }

    if (form) {
      document.getElementById("by-rule").open = matchMedia("(min-width: 64rem)").matches;
      form.addEventListener("submit", (event) => event.preventDefault());
      search.addEventListener("input", filter);
      boxes.forEach((box) => box.addEventListener("change", filter));
      document.getElementById("clear").addEventListener("click", clear);
      document.getElementById("open").addEventListener("click", () => toggle(true));
      document.getElementById("close").addEventListener("click", () => toggle(false));
      document.addEventListener("keydown", (event) => {
        if (event.key === "/" && !event.target.closest("input") && !event.ctrlKey && !event.metaKey) {
          event.preventDefault();
          search.focus();
        }
      });
      filter();
    }
    window.addEventListener("hashchange", reveal);
    reveal();
    root.dataset.ready = "";
  });
})();
