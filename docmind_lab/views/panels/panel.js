// ipywidgets gives the handle of a slider no accessible name, has no live region and cannot reach a clipboard. This
// names the one (its value is the exponent of a log slider: what is read out is the readout), makes the status the
// other, and copies. Without it, as in a static export, everything else still works. Widgets appear one by one and are
// made anew, so it is done again whenever something in the panel changes.
(() => {
  const set = (node, name, value) => { if (node && node.getAttribute(name) !== value) node.setAttribute(name, value); };
  const dress = (panel) => {
    for (const slider of panel.querySelectorAll('.widget-slider')) {
      const handle = slider.querySelector('.noUi-handle');
      set(handle, 'aria-label', slider.querySelector('label')?.textContent ?? '');
      set(handle, 'aria-valuetext', (slider.querySelector('.widget-readout')?.textContent ?? '') + ' s');
    }
    for (const status of panel.querySelectorAll('.docmind-status .widget-html-content')) {
      set(status, 'role', 'status');
      set(status, 'aria-live', 'polite');
    }
  };
  const copy = async (event) => {
    const button = event.target.closest?.('.docmind-copy');
    if (!button) return;
    const code = button.closest('.docmind-panel').querySelector('.docmind-code pre').textContent;
    try { await navigator.clipboard.writeText(code); button.textContent = 'Copied'; }
    catch { button.textContent = 'Select and copy it'; }
    setTimeout(() => { button.textContent = 'Copy code'; }, 2000);
  };
  const begin = (left) => {
    for (const panel of document.querySelectorAll('.docmind-panel:not([data-dressed])')) {
      panel.dataset.dressed = 'yes';
      dress(panel);
      new MutationObserver(() => dress(panel)).observe(panel, { subtree: true, childList: true, characterData: true });
      panel.addEventListener('click', copy);
    }
    if (left > 0) setTimeout(begin, 200, left - 1);
  };
  begin(25);
})();
