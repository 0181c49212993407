// Runs before the page is drawn, so that a chosen theme does not flash. Auto (no attribute) follows the system.
"use strict";
document.documentElement.classList.add("scripted");
try {
  const chosen = localStorage.getItem("meshd-theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // No storage: the system's theme.
}
