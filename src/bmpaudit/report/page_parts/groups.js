// Exposure by class, degree, homophily and prior: boxes, and every node as a point.
import {
  addChart,
  axis,
  drawChart,
  forPlotly,
  hoverText,
  layoutOf,
  moveMarks,
  OKABE_ITO,
  plotlySymbol,
  ring,
  SELECTED_COLOUR,
} from './charts.js';
import {byId} from './dom.js';
import {formatCount, formatSignificant, isNumber, shorten} from './format.js';
import {isFlagged, nodes, positions, state, whenChanged} from './state.js';
import {boxOf, meanOf, quantile} from './statistics.js';

const MAX_CLASSES = 16;

// Groups [{label, members}] in order, empty ones left out.
function groupNodes(key, members) {
  const value = (position) => nodes[key][position];
  const ranges = (edges, label) =>
    edges.slice(0, -1).map((low, index) => ({
      label: label(low, edges[index + 1]),
      members: members.filter(
        (position) => isNumber(value(position)) && value(position) >= low && value(position) < edges[index + 1],
      ),
    }));
  let groups;
  if (key === 'class') {
    const byClass = Map.groupBy
      ? Map.groupBy(members, value)
      : members.reduce(
          (map, position) => map.set(value(position), [...(map.get(value(position)) ?? []), position]),
          new Map(),
        );
    const ordered = [...byClass.entries()].sort((one, other) => other[1].length - one[1].length);
    groups = ordered.slice(0, MAX_CLASSES).map(([label, inside]) => ({label: shorten(label, 16), members: inside}));
    groups.push({label: 'other classes', members: ordered.slice(MAX_CLASSES).flatMap(([, inside]) => inside)});
  } else if (key === 'degree') {
    groups = ranges([0, 1, 2, 3, 4, 5, 6, 9, 17, 33, Infinity], (low, high) =>
      high === Infinity ? `≥ ${low}` : high - low === 1 ? `${low}` : `${low}–${high - 1}`,
    );
  } else if (key === 'homophily') {
    groups = ranges([0, 0.2, 0.4, 0.6, 0.8, 1, Infinity], (low, high) =>
      low === 1 ? 'exactly 1' : `${low} to < ${high}`,
    );
    groups.push({label: 'no neighbours', members: members.filter((position) => !isNumber(value(position)))});
  } else {
    const cuts = [0, 1, 2, 3, 4, 5]
      .map((sixth) => quantile(members.map(value), sixth / 6))
      .filter((cut, index, all) => isNumber(cut) && cut !== all[index - 1]);
    groups = ranges([...cuts, Infinity], (low, high) =>
      high === Infinity
        ? `≥ ${formatSignificant(low, 2)}`
        : `${formatSignificant(low, 2)} to < ${formatSignificant(high, 2)}`,
    );
  }
  return groups.filter((group) => group.members.length);
}

// Drawn from our own numbers: left to itself, Plotly takes the smallest and largest values as whiskers.
function boxTrace(place, box) {
  return {
    type: 'box',
    x: [place],
    q1: [box.lower],
    median: [box.median],
    q3: [box.upper],
    lowerfence: [box.low],
    upperfence: [box.high],
    width: 0.7,
    fillcolor: 'rgba(0,0,0,0)',
    line: {color: '#1b1f24', width: 1.5},
    hoverinfo: 'skip',
  };
}

export function show() {
  const [bySelect, measureSelect] = [byId('group-by'), byId('group-measure')];
  const spread = (position) => ((Math.imul(position + 1, 2654435761) >>> 0) / 2 ** 32 - 0.5) * 0.6;
  let places = new Map();

  const chart = addChart(
    'chart-groups',
    'Exposure by group of nodes',
    () => {
      const measure = nodes[measureSelect.value];
      const members = positions.filter((position) => isNumber(measure[position]));
      if (!members.length) return {empty: 'No node has a value.'};
      const groups = groupNodes(bySelect.value, members);
      places = new Map(
        groups.flatMap((group, index) => group.members.map((position) => [position, index + spread(position)])),
      );
      const order = [...places.keys()];
      const isShare = measureSelect.value.endsWith('_exposure');
      const isLogOdds = measureSelect.value.endsWith('_median');
      const title = measureSelect.selectedOptions[0].textContent;
      const ticktext = groups.map((group) => `${forPlotly(group.label)}<br>n = ${formatCount(group.members.length)}`);
      return {
        traces: [
          {
            x: order.map((position) => places.get(position)),
            y: order.map((position) => measure[position]),
            customdata: order,
            text: order.map(hoverText),
            hoverinfo: 'text',
            mode: 'markers',
            marker: {
              color: order.map((position) => (isFlagged(position) ? OKABE_ITO[3] : OKABE_ITO[0])),
              symbol: order.map((position) => (isFlagged(position) ? 'x-thin-open' : 'circle')),
              size: order.map((position) => (isFlagged(position) ? 6 : 4)),
              line: {width: order.map((position) => (isFlagged(position) ? 1.4 : 0))},
              opacity: order.map((position) => (isFlagged(position) ? 0.8 : 0.35)),
            },
          },
          ...groups.map((group, index) => boxTrace(index, boxOf(group.members.map((position) => measure[position])))),
          {
            x: groups.map((_, index) => index),
            y: groups.map((group) => meanOf(group.members.map((position) => measure[position]))),
            mode: 'markers',
            marker: {symbol: 'diamond', size: 11, color: SELECTED_COLOUR, line: {color: '#fff', width: 1}},
            hovertemplate: isShare ? 'mean %{y:.1%}<extra></extra>' : 'mean %{y:.2f}<extra></extra>',
          },
        ],
        layout: layoutOf({
          showlegend: false,
          uirevision: `${bySelect.value}/${measureSelect.value}`,
          margin: {l: 60, r: 34, t: 14, b: 70},
          xaxis: axis(bySelect.selectedOptions[0].textContent, {
            tickvals: groups.map((_, index) => index),
            ticktext,
            range: [-0.6, groups.length - 0.4],
            showgrid: false,
          }),
          yaxis: isShare
            ? axis(title, {tickformat: '.0%', rangemode: 'tozero'})
            : axis(isLogOdds ? `${plotlySymbol(title)} (log odds)` : title),
        }),
      };
    },
    () => {
      const value = nodes[measureSelect.value][state.selected];
      return places.has(state.selected) && isNumber(value) ? [ring(places.get(state.selected), value)] : [];
    },
  );
  [bySelect, measureSelect].forEach((select) => select.addEventListener('change', () => drawChart(chart)));
  whenChanged('select', () => moveMarks(chart));
}
