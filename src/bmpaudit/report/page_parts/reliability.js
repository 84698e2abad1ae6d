// Stated against observed probabilities of membership.
import {addChart, axis, forPlotly, layoutOf, line, OKABE_ITO} from './charts.js';
import {logit} from './exposure.js';
import {formatCounted, formatFixed, formatPercent} from './format.js';
import {data} from './state.js';
import {largest, smallest} from './statistics.js';

const TICKS = [0.0001, 0.001, 0.01, 0.1, 0.5, 0.9, 0.99, 0.999, 0.9999];
const [SMALLEST, LARGEST] = [4, 13]; // points of few and of many challenges, in pixels
const HIGHEST = 1 - 1e-9;

// A share of 0 or 1 has no log-odds: (C + 1/2)/(n + 1) stands for it.
export function observedLogOdds(observed, number) {
  return logit(observed > 0 && observed < 1 ? observed : (observed * number + 0.5) / (number + 1));
}

// The bins that hold a challenge.
function filledBins(release) {
  const {stated, observed, num_challenges: number} = release.exposure.reliability;
  const filled = (values) => values.filter((_, place) => number[place] > 0);
  return {release, stated: filled(stated), observed: filled(observed), number: filled(number)};
}

export function show() {
  addChart('chart-reliability', 'Stated and observed probabilities of membership', () => {
    const releases = data.releases.map((release) => filledBins(release)).filter((each) => each.stated.length);
    if (!releases.length) return {empty: 'No calibration in this audit.'};
    const most = Math.log(Math.max(2, largest(releases.flatMap((each) => each.number))));
    const traces = releases.map(({release, stated, observed, number}, index) => {
      const error = release.exposure.reliability.expected_calibration_error;
      const colour = OKABE_ITO[index % OKABE_ITO.length];
      return {
        x: stated.map((share) => logit(Math.min(Math.max(share, 1 - HIGHEST), HIGHEST))),
        y: observed.map((share, place) => observedLogOdds(share, number[place])),
        name: `${forPlotly(release.name)}: off by ${formatFixed(error, 4)} on average`,
        mode: 'lines+markers',
        line: {color: colour, width: 1},
        marker: {
          size: number.map((each) => SMALLEST + ((LARGEST - SMALLEST) * Math.log(each)) / most),
          color: observed.map((share) => (share > 0 && share < 1 ? colour : '#fff')),
          line: {color: colour, width: 1.5},
          opacity: 0.75,
        },
        text: stated.map(
          (share, place) =>
            `<b>${forPlotly(release.name)}</b><br>stated ${formatPercent(share, 2)}, observed ${formatPercent(observed[place], 2)}<br>${formatCounted(number[place], 'challenge')}`,
        ),
        hoverinfo: 'text',
      };
    });
    const places = traces.flatMap((trace) => [...trace.x, ...trace.y]);
    const [low, high] = [Math.min(smallest(places), -3) - 0.6, Math.max(largest(places), 3) + 0.6];
    const scale = {
      tickvals: TICKS.map(logit),
      ticktext: TICKS.map((share) => String(Number((100 * share).toFixed(2)))),
      tickangle: 0,
      range: [low, high],
    };
    return {
      traces,
      layout: layoutOf({
        showlegend: true,
        xaxis: axis('stated probability [%]', {...scale, constrain: 'domain'}),
        yaxis: axis('share of members [%]', {...scale, scaleanchor: 'x', constrain: 'domain'}),
        shapes: [line(low, low, high, high, {layer: 'below', line: {dash: 'dash', width: 1, color: '#56606b'}})],
      }),
    };
  });
}
