// Puts the page together from the scripts that page.html names, in that order.
import {drawAllCharts, resizeForPrint} from './charts.js';
import {byId} from './dom.js';
import {showContents} from './navigation.js';
import {announce, mostLeaking, selectFromAddress, state} from './state.js';

// The document's `data-state` is `loading`, then `built` once all but the charts is there, then `ready`.
export function showPage(parts) {
  const root = document.documentElement;
  showContents();
  parts.forEach((show) => show());
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
  root.dataset.state = 'built';
  drawAllCharts().then(() => {
    root.dataset.state = 'ready';
  });
}
