// Exposure by class, degree, homophily and prior: boxes of all nodes, and the nodes shown as points.
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
import {formatCount, isNumber, shorten} from './format.js';
import {data, isFlagged, nodes, positions, state, whenChanged} from './state.js';

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
      const {label, group, boxes} = data.groups[bySelect.value];
      const groups = boxes[measureSelect.value]
        .map((box, index) => ({label: shorten(label[index], 16), index, box}))
        .filter(({box}) => box);
      if (!groups.length) return {empty: 'No node has a value.'};
      const placeOf = new Map(groups.map(({index}, place) => [index, place]));
      const order = positions.filter((position) => isNumber(measure[position]) && placeOf.has(group[position]));
      places = new Map(order.map((position) => [position, placeOf.get(group[position]) + spread(position)]));
      const isShare = measureSelect.value.endsWith('_exposure');
      const isLogOdds = measureSelect.value.endsWith('_median');
      const title = measureSelect.selectedOptions[0].textContent;
      const ticktext = groups.map((each) => `${forPlotly(each.label)}<br>n = ${formatCount(each.box.num_nodes)}`);
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
          ...groups.map(({box}, place) => boxTrace(place, box)),
          {
            x: groups.map((_, index) => index),
            y: groups.map(({box}) => box.mean),
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
