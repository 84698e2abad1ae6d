// The graph on a canvas: thousands of nodes and edges stay quick there.
import {CIVIDIS, OKABE_ITO, SELECTED_COLOUR} from './charts.js';
import {byId, element, withSubscripts} from './dom.js';
import {formatCount, formatCounted, formatFixed, formatInterval, formatPercent, isNumber, shorten} from './format.js';
import {nodeButton} from './navigation.js';
import {
  byRank,
  data,
  inWords,
  isAboveThreshold,
  isAudited,
  namedInWords,
  neighbours,
  nodes,
  numShown,
  positions,
  selectNode,
  state,
  whenChanged,
} from './state.js';
import {largest, smallest} from './statistics.js';

const PALE = '#e3e7eb'; // never named

function mixColours(scale, share) {
  const place = Math.min(Math.max(share, 0), 1) * (scale.length - 1);
  const index = Math.min(Math.floor(place), scale.length - 2);
  const channel = (colour, at) => parseInt(colour.slice(at, at + 2), 16);
  const mixed = [1, 3, 5].map((at) =>
    Math.round(
      channel(scale[index], at) + (place - index) * (channel(scale[index + 1], at) - channel(scale[index], at)),
    ),
  );
  return `rgb(${mixed.join(',')})`;
}

// {colours by position, entries of the legend}; what has no value is null.
function graphColours(key) {
  if (key === 'class') {
    const counts = new Map();
    nodes.class.forEach((name) => counts.set(name, (counts.get(name) ?? 0) + 1));
    const shown = [...counts.keys()].sort((a, b) => counts.get(b) - counts.get(a)).slice(0, OKABE_ITO.length);
    const colours = nodes.class.map((name) => (shown.includes(name) ? OKABE_ITO[shown.indexOf(name)] : '#b0b7be'));
    return {
      colours,
      swatches: [
        ...shown.map((name, index) => [OKABE_ITO[index], shorten(name, 30)]),
        ...(counts.size > shown.length ? [['#b0b7be', 'other classes']] : []),
      ],
    };
  }
  const values = nodes[key];
  const isExposure = key.endsWith('_exposure');
  const [low, high] = [isExposure ? 0 : smallest(values), largest(values)];
  const colourOf = (value) => {
    if (!isNumber(value)) return null;
    if (isExposure && value === 0) return PALE;
    return mixColours(CIVIDIS, high > low ? (value - low) / (high - low) : 0.5);
  };
  const hasBar = isExposure ? high > 0 : low <= high;
  return {
    colours: values.map(colourOf),
    bar: hasBar ? [low, high].map((end) => (isExposure ? formatPercent(end) : formatFixed(end))) : null,
    swatches: [
      ...(isExposure && values.includes(0) ? [[PALE, 'never named']] : []),
      ...(values.some((value) => !isNumber(value)) ? [['#fff', 'not known']] : []),
    ],
  };
}

function showGraphLegend({bar, swatches}) {
  const parts = [];
  if (bar) {
    const strip = element('span', {class: 'bar'});
    strip.style.background = `linear-gradient(to right, ${CIVIDIS.join(',')})`;
    parts.push(element('span', {}, bar[0]), strip, element('span', {}, bar[1]));
  }
  swatches.forEach(([colour, label]) => {
    const swatch = element('span', {class: 'swatch'});
    swatch.style.background = colour;
    parts.push(element('span', {class: 'name'}, swatch, label));
  });
  byId('graph-legend').replaceChildren(...parts);
}

export function show() {
  const canvas = byId('graph-canvas');
  const pen = canvas.getContext('2d');
  const tip = byId('graph-tip');
  const margin = 18;
  const view = {zoom: 1, x: 0.5, y: 0.5, hovered: null, width: 0, height: 0};
  const edges = {source: data.edges?.source ?? [], target: data.edges?.target ?? []};
  let paint = graphColours('member_exposure');
  let isWaiting = false;

  const across = (position) => view.width / 2 + (nodes.x[position] - view.x) * (view.width - 2 * margin) * view.zoom;
  const down = (position) => view.height / 2 + (nodes.y[position] - view.y) * (view.height - 2 * margin) * view.zoom;
  const radius = (position) =>
    (numShown > 1500 ? 2.6 : 3.8) * Math.min(2.2, Math.sqrt(view.zoom)) * (isAboveThreshold(position) ? 1.6 : 1);

  function drawNode(position, ringColour, ringWidth) {
    pen.beginPath();
    pen.arc(across(position), down(position), radius(position) + (ringWidth > 1 ? 1.5 : 0), 0, 2 * Math.PI);
    pen.fillStyle = paint.colours[position] ?? '#fff';
    pen.fill();
    pen.lineWidth = ringWidth;
    pen.strokeStyle = ringColour;
    pen.stroke();
  }

  function drawEdges(list, colour, width) {
    pen.beginPath();
    for (const [source, target] of list) {
      pen.moveTo(across(source), down(source));
      pen.lineTo(across(target), down(target));
    }
    pen.strokeStyle = colour;
    pen.lineWidth = width;
    pen.stroke();
  }

  function drawLabel(position) {
    const text = shorten(nodes.name[position], 30);
    pen.font = '600 13px system-ui, "Liberation Sans", sans-serif';
    const width = pen.measureText(text).width;
    const x = Math.min(Math.max(across(position) + 10, 4), view.width - width - 4);
    const y = Math.min(Math.max(down(position) - 8, 14), view.height - 6);
    pen.lineWidth = 4;
    pen.strokeStyle = '#fff';
    pen.strokeText(text, x, y);
    pen.fillStyle = '#1b1f24';
    pen.fillText(text, x, y);
  }

  // Who is most at risk is drawn last, so that nobody hides them.
  const order = [...byRank].reverse();

  function draw() {
    isWaiting = false;
    const ratio = window.devicePixelRatio || 1;
    if (canvas.width !== Math.round(view.width * ratio) || canvas.height !== Math.round(view.height * ratio)) {
      canvas.width = Math.round(view.width * ratio);
      canvas.height = Math.round(view.height * ratio);
    }
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.fillStyle = '#fff';
    pen.fillRect(0, 0, view.width, view.height);
    drawEdges(
      edges.source.map((source, index) => [source, edges.target[index]]),
      '#8a949e80',
      0.7,
    );
    order.forEach((position) => drawNode(position, paint.colours[position] ? '#0005' : '#56606b', 0.8));
    for (const position of new Set([state.selected, view.hovered])) {
      if (position === null) continue;
      drawEdges(
        neighbours[position].map((other) => [position, other]),
        SELECTED_COLOUR,
        1.8,
      );
      neighbours[position].forEach((other) => drawNode(other, SELECTED_COLOUR, 1.5));
      drawNode(position, SELECTED_COLOUR, 3);
    }
    if (state.selected !== null) drawLabel(state.selected);
  }

  function redraw() {
    if (isWaiting) return;
    isWaiting = true;
    requestAnimationFrame(draw);
  }

  function nearest(event, reach) {
    const box = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    let [best, least] = [null, reach * reach];
    for (const position of positions) {
      const distance = (across(position) - x) ** 2 + (down(position) - y) ** 2;
      if (distance <= least) [best, least] = [position, distance];
    }
    return best;
  }

  function hover(event) {
    const position = nearest(event, 10);
    canvas.style.cursor = position === null ? 'grab' : 'pointer';
    if (position !== view.hovered) {
      view.hovered = position;
      redraw();
    }
    tip.hidden = position === null;
    if (position === null) return;
    const errors = isAudited(position)
      ? `e_R ${formatFixed(nodes.right_median[position])} (${formatInterval(nodes.right_low[position], nodes.right_high[position])})`
      : nodes.flag[position] || 'not audited';
    tip.replaceChildren(
      `${shorten(nodes.name[position], 60)}\nclass ${shorten(nodes.class[position])}, ${formatCounted(nodes.degree[position], 'neighbour')}\n${namedInWords(position)}\n`,
      ...withSubscripts(errors),
    );
    tip.style.left = `${Math.min(across(position) + 12, Math.max(0, view.width - tip.offsetWidth - 4))}px`;
    tip.style.top = `${down(position) > view.height / 2 ? down(position) - tip.offsetHeight - 12 : down(position) + 12}px`;
  }

  function moveTo(x, y, zoom) {
    Object.assign(view, {
      x: Math.min(Math.max(x, 0), 1),
      y: Math.min(Math.max(y, 0), 1),
      zoom: Math.min(Math.max(zoom, 1), 40),
    });
    if (view.zoom === 1) Object.assign(view, {x: 0.5, y: 0.5});
    canvas.style.touchAction = view.zoom > 1 ? 'none' : 'pan-x pan-y';
    tip.hidden = true;
    redraw();
  }
  const zoomBy = (factor) => moveTo(view.x, view.y, view.zoom * factor);
  const shift = (right, below) => moveTo(view.x + right / view.zoom, view.y + below / view.zoom, view.zoom);

  // Fingers and mouse buttons that are down, by pointer. A finger scrolls the page until the graph is zoomed in.
  const pointers = new Map();
  let hasMoved = false;
  canvas.addEventListener('pointerdown', (event) => {
    if (!pointers.size) hasMoved = false;
    pointers.set(event.pointerId, {x: event.clientX, y: event.clientY});
  });
  canvas.addEventListener('pointermove', (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) {
      hover(event);
      return;
    }
    const [right, below] = [event.clientX - before.x, event.clientY - before.y];
    if (!hasMoved && Math.hypot(right, below) < 4) return;
    hasMoved = true;
    canvas.setPointerCapture(event.pointerId);
    const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
    pointers.set(event.pointerId, {x: event.clientX, y: event.clientY});
    if (other) {
      const apart = (point) => Math.max(Math.hypot(point.x - other.x, point.y - other.y), 10);
      zoomBy(apart(pointers.get(event.pointerId)) / apart(before));
      return;
    }
    moveTo(
      view.x - right / ((view.width - 2 * margin) * view.zoom),
      view.y - below / ((view.height - 2 * margin) * view.zoom),
      view.zoom,
    );
  });
  canvas.addEventListener('pointerleave', () => {
    view.hovered = null;
    tip.hidden = true;
    redraw();
  });
  ['pointerup', 'pointercancel'].forEach((name) =>
    window.addEventListener(name, (event) => pointers.delete(event.pointerId)),
  );
  canvas.addEventListener('click', (event) => {
    const position = hasMoved ? null : nearest(event, 14);
    if (position !== null) selectNode(position);
  });
  canvas.addEventListener(
    'wheel',
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoomBy(event.deltaY < 0 ? 1.25 : 0.8);
    },
    {passive: false},
  );
  canvas.addEventListener('keydown', (event) => {
    const act = {
      ArrowLeft: () => shift(-0.1, 0),
      ArrowRight: () => shift(0.1, 0),
      ArrowUp: () => shift(0, -0.1),
      ArrowDown: () => shift(0, 0.1),
      '+': () => zoomBy(1.4),
      '-': () => zoomBy(1 / 1.4),
    }[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });

  byId('graph-in').addEventListener('click', () => zoomBy(1.6));
  byId('graph-out').addEventListener('click', () => zoomBy(1 / 1.6));
  byId('graph-reset').addEventListener('click', () => moveTo(0.5, 0.5, 1));
  byId('graph-centre').addEventListener('click', () => {
    if (state.selected !== null) moveTo(nodes.x[state.selected], nodes.y[state.selected], Math.max(view.zoom, 4));
  });
  byId('graph-colour').addEventListener('change', (event) => {
    paint = graphColours(event.target.value);
    showGraphLegend(paint);
    redraw();
  });
  byId('graph-search').addEventListener('input', (event) => {
    const wanted = event.target.value.trim().toLowerCase();
    const found = wanted
      ? positions.filter(
          (position) =>
            String(nodes.name[position]).toLowerCase().includes(wanted) || String(nodes.id[position]) === wanted,
        )
      : [];
    const more = found.length > 10 ? [element('li', {}, `and ${formatCount(found.length - 10)} more`)] : [];
    byId('graph-found').replaceChildren(
      ...found.slice(0, 10).map((position) => element('li', {}, nodeButton(position))),
      ...(wanted && !found.length ? [element('li', {}, inWords('No such node.'))] : more),
    );
  });
  new ResizeObserver(() => {
    Object.assign(view, {width: canvas.clientWidth, height: canvas.clientHeight});
    redraw();
  }).observe(canvas);
  whenChanged('select', redraw);
  whenChanged('threshold', redraw);
  showGraphLegend(paint);
  const numBetween = data.edges?.num_between ?? 0;
  if (numBetween > edges.source.length) {
    byId('graph-edges').textContent =
      `Of the ${formatCounted(numBetween, 'edge')} between them, ${formatCount(edges.source.length)} are drawn.`;
  }
}
