// Puts the page together from the scripts that page.html names, in that order.
import {drawAllCharts, resizeForPrint} from './charts.js';
import {byId} from './dom.js';
import {showContents} from './navigation.js';
import {announce, byRank, nodes, selectFromAddress, state} from './state.js';

// The document's `data-state` is `loading`, then `built` once all but the charts is there, then `ready`.
export function showPage(parts) {
  const root = document.documentElement;
  parts.forEach((show) => show());
  showContents(); // of the sections that have something to show
  if (!selectFromAddress()) {
    // Where nobody is ever named, nobody is singled out.
    state.selected = nodes.member_named[byRank[0]] > 0 ? byRank[0] : null;
    announce('select');
  }
  window.addEventListener('hashchange', selectFromAddress);
  window.addEventListener('beforeprint', () => {
    byId('node-panel').open = true;
    resizeForPrint(true);
  });
  window.addEventListener('afterprint', () => resizeForPrint(false));
  root.dataset.state = 'built';
  drawAllCharts().then(() => {
    root.dataset.state = 'ready';
  });
}
