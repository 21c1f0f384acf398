"use strict";
// Tables sort by a click on a column's name. Without this script they stay in the report's own order.
document.querySelectorAll("table.sortable").forEach(function (table) {
  var body = table.tBodies[0];
  if (body.rows.length < 2) return;
  Array.prototype.forEach.call(table.tHead.rows[0].cells, function (head, column) {
    var button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.textContent = "";
    head.appendChild(button);
    var numeric = head.classList.contains("number");
    function key(row) {
      var text = row.cells[column].textContent.trim();
      if (!numeric) return text;
      var number = parseFloat(text.replace(/,/g, ""));
      return isNaN(number) ? -Infinity : number;
    }
    button.addEventListener("click", function () {
      var down = head.getAttribute("aria-sort") === (numeric ? "descending" : "ascending") ? !numeric : numeric;
      var rows = Array.prototype.slice.call(body.rows);
      rows.sort(function (one, other) {
        var a = key(one), b = key(other);
        var order = numeric ? (a < b ? -1 : a > b ? 1 : 0) : a.localeCompare(b);
        return down ? -order : order;
      });
      rows.forEach(function (row) { body.appendChild(row); });
      table.querySelectorAll("[aria-sort]").forEach(function (other) { other.removeAttribute("aria-sort"); });
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
    });
  });
});
// A phone shows long tables when they are asked for; paper shows all of them.
document.querySelectorAll("details.long").forEach(function (details) {
  if (window.matchMedia("(max-width: 46rem)").matches) details.open = false;
  window.addEventListener("beforeprint", function () { details.open = true; });
});
