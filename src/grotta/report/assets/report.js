"use strict";
(() => {
  const status = document.getElementById("status");
  const key = (row, column) => {
    const value = row.cells[column].dataset.value;
    return value === undefined || value === "" ? null : value;
  };
  const compare = (a, b) => (isNaN(a) || isNaN(b) ? String(a).localeCompare(String(b)) : a - b);

  // Blanks stay last in either direction; equal values keep their order.
  const sorted = (rows, column, sign) =>
    [...rows].sort((first, second) => {
      const [a, b] = [key(first, column), key(second, column)];
      return a === null || b === null ? (a === null) - (b === null) : sign * compare(a, b);
    });

  for (const table of document.querySelectorAll("table")) {
    const body = table.tBodies[0];
    const given = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      const button = head.querySelector("button");
      button.disabled = false;
      button.addEventListener("click", () => {
        const next = { ascending: "descending", descending: "none" }[head.getAttribute("aria-sort")] ?? "ascending";
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        if (next !== "none") head.setAttribute("aria-sort", next);
        body.append(...(next === "none" ? given : sorted(given, column, next === "ascending" ? 1 : -1)));
        status.textContent = next === "none" ? "in the original order" : `sorted by ${button.textContent}, ${next}`;
      });
    });
  }

  const reveal = (target) => {
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
  };
  const follow = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target) {
      reveal(target);
      target.scrollIntoView({ block: "center" });
    }
  };
  addEventListener("hashchange", follow);
  follow();

  const dialog = document.getElementById("behind");
  const content = document.getElementById("behind-cells");
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[data-cells]");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    content.replaceChildren(
      ...link.dataset.cells.split(" ").map((id, place) => {
        const copy = document.getElementById(`cell-${id}`).cloneNode(true);
        copy.removeAttribute("id");
        copy.open = place === 0;
        return copy;
      }),
    );
    dialog.showModal();
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog) dialog.close();
  });
})();
