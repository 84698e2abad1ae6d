// The paper's Figure 3: what was known before against what one node's errors imply.
import {
  addChart,
  axis,
  drawChart,
  hoverText,
  layoutOf,
  line,
  moveMarks,
  OKABE_ITO,
  ring,
  SELECTED_COLOUR,
} from './charts.js';
import {byId} from './dom.js';
import {formatCounted} from './format.js';
import {audited, inWords, isFlagged, nodes, numShown, state, whenChanged} from './state.js';
import {largest, smallest} from './statistics.js';

export function show() {
  const select = byId('prior-axis');
  const across = (gamma) => (select.value === 'odds' ? Math.log(gamma / (1 - gamma)) : gamma);
  const drawable = audited.filter(
    (position) =>
      Number.isFinite(across(nodes.prior_prob[position])) &&
      nodes.prior_prob[position] > 0 &&
      nodes.prior_prob[position] < 1,
  );
  const numLeftOut = numShown - drawable.length;
  byId('prior-left-out').textContent = numLeftOut
    ? `${formatCounted(numLeftOut, inWords('node'))} that could not be audited ${numLeftOut === 1 ? 'is' : 'are'} not shown.`
    : '';

  const cloud = (chosen, name, marker) => ({
    x: chosen.map((position) => across(nodes.prior_prob[position])),
    y: chosen.map((position) => nodes.right_median[position]),
    customdata: chosen,
    text: chosen.map(hoverText),
    hoverinfo: 'text',
    mode: 'markers',
    name,
    marker,
  });
  const chart = addChart(
    'chart-prior',
    'Prior probability and leakage of every audited node',
    () => {
      if (!drawable.length) return {empty: 'No node could be audited.'};
      const priors = drawable.map((position) => nodes.prior_prob[position]);
      const [least, most] = [smallest(priors), largest(priors)].map((gamma) => Math.log(gamma / (1 - gamma)));
      const odds = Array.from({length: 101}, (_, step) => least - 0.05 + ((most - least + 0.1) * step) / 100);
      const floor = {
        x: odds.map((log) => across(1 / (1 + Math.exp(-log)))),
        y: odds,
        mode: 'lines',
        name: 'floor',
        line: {color: '#1b1f24', width: 1.5},
        hoverinfo: 'skip',
      };
      // Room for every interval, because any node may be selected.
      const bottom = Math.min(odds[0], smallest(drawable.map((position) => nodes.right_low[position])));
      const top = Math.max(odds.at(-1), largest(drawable.map((position) => nodes.right_high[position])));
      const sound = drawable.filter((position) => !isFlagged(position));
      const flagged = drawable.filter(isFlagged);
      return {
        traces: [
          cloud(sound, 'audited', {color: OKABE_ITO[0], size: 6, opacity: 0.6}),
          ...(flagged.length
            ? [cloud(flagged, 'flagged', {color: OKABE_ITO[3], symbol: 'x-thin-open', size: 7, line: {width: 1.6}})]
            : []),
          floor,
        ],
        layout: layoutOf({
          showlegend: true,
          xaxis: axis(select.value === 'odds' ? 'log prior odds log η' : 'prior probability γ', {
            nticks: 8,
          }),
          yaxis: axis('e<sub>R</sub> (log odds)', {
            range: [bottom - 0.05 * (top - bottom), top + 0.05 * (top - bottom)],
          }),
        }),
      };
    },
    () => {
      const marks = [];
      const position = state.selected;
      if (position !== null && drawable.includes(position)) {
        const x = across(nodes.prior_prob[position]);
        marks.push(
          line(x, nodes.right_low[position], x, nodes.right_high[position], {line: {color: SELECTED_COLOUR, width: 3}}),
          ring(x, nodes.right_median[position]),
        );
      }
      return marks;
    },
  );
  select.addEventListener('change', () => drawChart(chart));
  whenChanged('select', () => moveMarks(chart));
}
