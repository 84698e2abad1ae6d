// How the numbers came about.
import {byId, element, withSubscripts} from './dom.js';
import {data} from './state.js';

export function show() {
  for (const key of ['provenance', 'diagnostics', 'timings']) {
    const rows = (data[key] ?? []).map(([name, value]) =>
      element('tr', {}, element('th', {scope: 'row'}, ...withSubscripts(name)), element('td', {}, String(value))),
    );
    byId(key).replaceChildren(
      element('tbody', {}, ...(rows.length ? rows : [element('tr', {}, element('td', {}, 'None recorded.'))])),
    );
  }
  byId('plan').textContent = data.plan_toml || 'Not recorded.';
  byId('citation').textContent = data.citation || '';
}
