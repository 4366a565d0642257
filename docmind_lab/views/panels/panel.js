// Draws the state of a panel and says what is done to it: the model is read here, and written by Python alone.
const STEP = 0.02; // of the slider, whose position is the exponent of ten: a press of a key is 5 %

const make = (tag, attributes = {}, ...children) => {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (value !== false) node.setAttribute(name, value === true ? '' : value);
  }
  node.append(...children);
  return node;
};
const seconds = (exponent) => Number((10 ** Number(exponent)).toPrecision(3));
const typed = (text) => (text.trim() === '' || Number.isNaN(Number(text)) ? text : Number(text));
let made = 0;

// ---- one control: its element, and how it shows a state

function field(control, input, label) {
  const id = `docmind-${(made += 1)}`;
  input.id = id;
  const wrong = make('p', { class: 'wrong', id: `${id}-wrong`, role: 'alert' });
  const node = make('div', { class: `control ${control.kind}` }, make('label', { for: id }, label), input, wrong);
  const show = ({ value, options, error }) => {
    if (input.tagName === 'SELECT') fill(input, options, value);
    else if (input.type === 'checkbox') input.checked = value;
    else if (!error) input.value = value;
    wrong.textContent = error;
    input.setAttribute('aria-invalid', String(Boolean(error)));
    if (error) input.setAttribute('aria-describedby', wrong.id);
    else input.removeAttribute('aria-describedby');
  };
  return { node, show };
}

function fill(select, options, value) {
  const now = JSON.stringify(options);
  if (select.dataset.options !== now) {
    select.replaceChildren(...options.map(([each, label]) => make('option', { value: each }, label)));
    select.dataset.options = now;
  }
  select.value = value;
}

const DRAWN = {
  select: (control, set) =>
    field(control, make('select', { onchange: (event) => set(event.target.value) }), control.label),
  check: (control, set) =>
    field(control, make('input', { type: 'checkbox', onchange: (event) => set(event.target.checked) }), control.label),
  number: (control, set) =>
    field(
      control,
      make('input', { type: 'number', step: 'any', onchange: (event) => set(typed(event.target.value)) }),
      control.label,
    ),
  slider: (control, set) => {
    const [least, most] = control.bounds.map(Math.log10);
    const range = make('input', { type: 'range', min: least, max: most, step: STEP, 'aria-label': control.label });
    const number = DRAWN.number({ ...control, label: 'or type it (s)' }, set);
    range.addEventListener('input', () => set(seconds(range.value)));
    const name = make('span', { 'aria-hidden': 'true' }, control.label);
    const node = make('div', { class: 'control wide' }, name, range, number.node);
    const show = (state) => {
      range.value = Math.log10(state.value);
      range.setAttribute('aria-valuetext', `${state.value} s`);
      number.show(state);
    };
    return { node, show };
  },
  checks: (control, set) => {
    const node = make('fieldset', { class: 'control wide' });
    const wrong = make('p', { class: 'wrong', role: 'alert' });
    const boxes = new Map();
    const chosen = () => [...boxes].filter(([, box]) => box.checked).map(([name]) => name);
    node.append(make('legend', {}, control.label), wrong);
    const show = ({ value, options, error }) => {
      for (const [name, label] of options) {
        if (boxes.has(name)) continue;
        boxes.set(name, make('input', { type: 'checkbox', onchange: () => set(chosen()) }));
        wrong.before(make('label', {}, boxes.get(name), ` ${label}`));
      }
      for (const [name, box] of boxes) box.checked = value.includes(name);
      wrong.textContent = error;
    };
    return { node, show };
  },
};

// ---- the panel

function render({ model, el }) {
  const view = Math.random().toString(36).slice(2);
  let sent = 0;
  let waiting = null;
  const set = (name, to) => {
    waiting = `${view}-${(sent += 1)}`;
    model.send({ set: name, to, id: waiting });
  };

  const controls = make('div', { class: 'controls' });
  const run = make('button', { onclick: () => model.send({ do: 'run' }) }, 'Run');
  const stop = make('button', { onclick: () => model.send({ do: 'stop' }) }, 'Stop');
  const bar = make('progress', { 'aria-label': 'Runs done' });
  const status = make('p', { class: 'status', role: 'status', 'aria-live': 'polite' });
  const error = make('p', { class: 'wrong', role: 'alert' });
  const tabs = make('div', { class: 'tabs', role: 'tablist', 'aria-label': 'Views' });
  const question = field({ kind: 'question' }, make('select'), 'Question');
  const note = make('p', { class: 'note' });
  const page = make('div', { class: 'page' }, 'No run is done yet.');
  const shown = make('div', { role: 'tabpanel', class: 'shown' }, question.node, note, page);
  const code = make('pre', { tabindex: '0', 'aria-label': 'Python code of this study' });
  const copy = make('button', { class: 'copy' }, 'Copy code');
  const buttons = make('div', { class: 'buttons' }, run, stop, bar);
  // A notebook has arrow keys of its own, which a slider and the tabs need here.
  const keys = { 'data-lm-suppress-shortcuts': 'true', onkeydown: (event) => event.stopPropagation() };
  const panel = make('div', { class: 'docmind-panel', ...keys }, controls, buttons, status, error, tabs, shown, copy, code);
  el.append(panel);

  question.node.addEventListener('change', (event) => set('question', Number(event.target.value)));
  copy.addEventListener('click', async () => {
    try { await navigator.clipboard.writeText(code.textContent); copy.textContent = 'Copied'; }
    catch { copy.textContent = 'Select and copy it'; }
    setTimeout(() => { copy.textContent = 'Copy code'; }, 2000);
  });

  const drawn = new Map();
  const form = () => {
    const state = model.get('form');
    // What was done since is on its way: its answer comes, and an older state would move a handle back.
    if (waiting !== null && state.heard !== waiting) return;
    waiting = null;
    for (const control of state.controls) {
      if (!drawn.has(control.name)) {
        drawn.set(control.name, DRAWN[control.kind](control, (value) => set(control.name, value)));
      }
      drawn.get(control.name).show(control);
    }
    const there = state.controls.map((control) => drawn.get(control.name).node);
    if (there.length !== controls.children.length || there.some((node, place) => node !== controls.children[place])) {
      const focused = panel.getRootNode().activeElement;
      controls.replaceChildren(...there);
      focused?.focus?.();
    }
    if (!tabs.children.length) tabs.append(...state.views.map(tab));
    question.show({ value: String(model.get('question')), options: state.questions.map((text, n) => [String(n), text]) });
    front();
  };

  const tab = (name) => make('button', { role: 'tab', onclick: () => set('view', name) }, name);
  tabs.addEventListener('keydown', (event) => {
    const move = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!move) return;
    const all = [...tabs.children];
    const next = all[(all.findIndex((each) => each.textContent === model.get('view')) + move + all.length) % all.length];
    next.focus();
    next.click();
  });
  const front = () => {
    for (const each of tabs.children) {
      const isFront = each.textContent === model.get('view');
      each.setAttribute('aria-selected', String(isFront));
      each.tabIndex = isFront ? 0 : -1;
    }
    shown.setAttribute('aria-label', model.get('view'));
    question.node.hidden = model.get('view') !== 'Timeline';
  };

  const follow = {
    form,
    view: front,
    question: form,
    status: () => { status.textContent = model.get('status'); },
    error: () => { error.textContent = model.get('error'); },
    running: () => { stop.disabled = !model.get('running'); bar.hidden = !model.get('running'); },
    progress: () => { [bar.value, bar.max] = model.get('progress'); },
    note: () => { note.textContent = model.get('note'); page.classList.toggle('old', note.textContent !== ''); },
    page: () => { if (model.get('page')) page.innerHTML = model.get('page'); },
    code_shown: () => { code.textContent = model.get('code_shown'); },
  };
  for (const [name, show] of Object.entries(follow)) {
    model.on(`change:${name}`, show);
    show();
  }

  // ---- the page around it: its colours and its width

  const pixel = make('canvas', { width: 1, height: 1 }).getContext('2d', { willReadFrequently: true });
  const colours = () => {
    let paper = [255, 255, 255];
    for (let node = el; node; node = node.parentElement ?? node.getRootNode().host) {
      pixel.clearRect(0, 0, 1, 1);
      pixel.fillStyle = getComputedStyle(node).backgroundColor;
      pixel.fillRect(0, 0, 1, 1);
      const [red, green, blue, alpha] = pixel.getImageData(0, 0, 1, 1).data;
      if (alpha > 127) {
        paper = [red, green, blue];
        break;
      }
    }
    panel.classList.toggle('dark', paper[0] * 0.3 + paper[1] * 0.6 + paper[2] * 0.1 < 128);
    panel.style.setProperty('--docmind-paper', `rgb(${paper})`);
  };
  const themes = new MutationObserver(() => setTimeout(colours, 100));
  for (const node of [document.documentElement, document.body]) themes.observe(node, { attributes: true });
  let isNarrow = false;
  const widths = new ResizeObserver(([{ contentRect }]) => {
    if (!contentRect.width || contentRect.width < 560 === isNarrow) return;
    isNarrow = !isNarrow;
    set('narrow', isNarrow);
  });
  widths.observe(panel);
  setTimeout(colours);
  return () => {
    for (const [name, show] of Object.entries(follow)) model.off(`change:${name}`, show);
    themes.disconnect();
    widths.disconnect();
  };
}

export default { render };
