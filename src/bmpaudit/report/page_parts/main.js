// Puts the page together.
function showSection(id) {
  // Not by the address, which holds the selected node.
  byId(id).scrollIntoView();
  byId(id).focus({preventScroll: true});
}

function showContents() {
  const links = [...document.querySelectorAll('section[data-nav]')].map((section) => element('a', {href: `#${section.id}`}, section.dataset.nav));
  byId('contents').replaceChildren(...links);
  document.querySelectorAll('nav a, a.skip').forEach((link) => link.addEventListener('click', (event) => {
    event.preventDefault();
    showSection(link.getAttribute('href').slice(1));
  }));
}

showContents();
showSummary();
showThreshold();
showNullControl();
showPosteriors();
showJoint();
showRegions();
showPriorScatter();
showGraph();
showGroups();
showVariants();
showMargins();
showAccuracy();
showNodePanel();
showNodeTable();
showProvenance();

if (!selectFromAddress()) {
  state.selected = mostLeaking();
  announce('select');
}
window.addEventListener('hashchange', selectFromAddress);
window.addEventListener('beforeprint', () => {
  byId('node-panel').open = true;
  resizeForPrint(true);
});
window.addEventListener('afterprint', () => resizeForPrint(false));
// For the tests of the page.
window.bmpaudit = {betaQuantile, regionCorners, state};
drawAllCharts().then(() => {
  document.documentElement.dataset.state = 'ready';
});
