
"use strict";
(() => {
  const one = (selector, root = document) => root.querySelector(selector);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

  document.documentElement.classList.add("scripted");

  // The tooltip beside the pointer.
  const tip = one("#tip");
  const hideTip = () => tip.classList.remove("on");
  const showTip = (event, words) => {
    if (!words) return hideTip();
    tip.textContent = words;
    tip.classList.add("on");
    const { width, height } = tip.getBoundingClientRect();
    const above = event.clientY - height - 14;
    tip.style.left = `${clamp(event.clientX - width / 2, 6, innerWidth - width - 6)}px`;
    tip.style.top = `${above > 6 ? above : event.clientY + 20}px`;
  };
  for (const kind of ["pointermove", "pointerdown"]) {
    document.addEventListener(kind, (event) => {
      if (!event.target.closest?.(".timeline")) showTip(event, event.target.closest?.("[data-tip]")?.dataset.tip);
    });
  }
  document.documentElement.addEventListener("pointerleave", hideTip);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hideTip(); });
  document.addEventListener("scroll", hideTip, { passive: true });

  // Formats a time with enough digits to distinguish times that are `step` apart.
  const time = (nanoseconds, step, end) => {
    const [size, unit] = end < 1e3 ? [1, "ns"] : end < 1e6 ? [1e3, "µs"] : end < 1e9 ? [1e6, "ms"] : [1e9, "s"];
    const digits = clamp(Math.ceil(-Math.log10(step / size)) + 2, 0, 5);
    return `${(nanoseconds / size).toFixed(nanoseconds ? digits : 0)} ${unit}`;
  };

  // A timeline, and the part of it that is visible.
  class Timeline {
    constructor(box) {
      this.box = box;
      this.plane = one(".plane", box);
      this.ticks = all("text.axis", box);
      this.names = all("text.name", box).map((name) => name.textContent);
      this.output = one("output", box.parentNode);
      this.columns = this.plane.viewBox.baseVal.width;
      this.height = this.plane.viewBox.baseVal.height;
      this.span = Number(box.dataset.span);
      this.pointers = new Map();
      this.show(0, this.columns);
      this.output.value = "";
      box.tabIndex = 0;
      box.setAttribute("role", "group");
      box.setAttribute("aria-label", "Timeline");
      box.addEventListener("keydown", (event) => this.key(event));
      box.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
      box.addEventListener("pointerdown", (event) => this.hold(event));
      box.addEventListener("pointermove", (event) => this.move(event));
      for (const end of ["pointerup", "pointercancel"]) box.addEventListener(end, (event) => this.release(event));
      box.addEventListener("pointerleave", hideTip);
      const controls = one(".zoom", box.parentNode);
      controls.hidden = false;
      for (const button of all("button", controls)) button.addEventListener("click", () => this.press(button.dataset.zoom));
    }

    show(from, width) {
      this.width = clamp(width, Math.min(20, this.columns), this.columns);
      this.from = clamp(from, 0, this.columns - this.width);
      this.plane.setAttribute("viewBox", `${this.from} 0 ${this.width} ${this.height}`);
      const at = (part) => ((this.from + this.width * part) / this.columns) * this.span;
      const step = (this.width / this.columns) * this.span / (this.ticks.length - 1);
      this.ticks.forEach((tick, place) => { tick.textContent = time(at(place / (this.ticks.length - 1)), step, this.span); });
      if (this.width < this.columns || this.parsed) this.lines();
      this.output.value = this.width < this.columns ? `${time(at(0), step, this.span)} to ${time(at(1), step, this.span)}` : "whole run";
    }

    // The drawn slices and steals, parsed from the paths.
    get lanes() {
      const pitch = Number(this.box.dataset.pitch);
      this.parsed ??= all("[data-lane]", this.plane).map((lane) => ({
        busy: slices(one(".busy", lane)), asleep: slices(one(".asleep", lane)), steals: steals(one(".from", lane), pitch),
      }));
      return this.parsed;
    }

    // Lines to the victims are shown only if there is room for them.
    lines() {
      const seen = this.lanes.flatMap((lane) => lane.steals).filter((steal) => steal.at >= this.from && steal.at <= this.from + this.width);
      this.box.classList.toggle("close", seen.length <= Number(this.box.dataset.lines));
    }

    zoom(factor, part = 0.5) {
      const width = clamp(this.width * factor, 20, this.columns);
      this.show(this.from + (this.width - width) * part, width);
    }

    press(what) {
      if (what === "all") this.show(0, this.columns);
      else this.zoom(what === "in" ? 0.5 : 2);
    }

    key(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const pan = (part) => this.show(this.from + this.width * part, this.width);
      const keys = {
        ArrowUp: () => this.zoom(0.7), "+": () => this.zoom(0.7), "=": () => this.zoom(0.7),
        ArrowDown: () => this.zoom(1 / 0.7), "-": () => this.zoom(1 / 0.7),
        ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15),
        Home: () => this.show(0, this.columns), "0": () => this.show(0, this.columns),
      };
      if (!keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    }

    // The horizontal position of the pointer, from 0 to 1.
    part(event) {
      const { left, width } = this.box.getBoundingClientRect();
      return clamp((event.clientX - left) / width, 0, 1);
    }

    wheel(event) {
      if (!event.ctrlKey) return;
      event.preventDefault();
      this.zoom(Math.exp(clamp(event.deltaY, -100, 100) / 200), this.part(event));
    }

    hold(event) {
      hideTip();
      this.pointers.set(event.pointerId, this.part(event));
      this.box.setPointerCapture(event.pointerId);
      this.box.classList.add("held");
    }

    release(event) {
      this.pointers.delete(event.pointerId);
      if (!this.pointers.size) this.box.classList.remove("held");
    }

    move(event) {
      const now = this.part(event);
      if (!this.pointers.has(event.pointerId)) return showTip(event, this.words(event, now));
      const before = this.pointers.get(event.pointerId);
      const other = [...this.pointers].find(([id]) => id !== event.pointerId)?.[1];
      this.pointers.set(event.pointerId, now);
      if (other === undefined) return this.show(this.from - (now - before) * this.width, this.width);
      const factor = Math.max(Math.abs(before - other), 0.02) / Math.max(Math.abs(now - other), 0.02);
      this.zoom(factor, (now + other) / 2);
    }

    // Describes the activity at the pointer.
    words(event, part) {
      const { top, width } = this.box.getBoundingClientRect();
      const pitch = Number(this.box.dataset.pitch);
      const place = Math.floor((event.clientY - top) / pitch);
      if (place < 0 || place >= this.names.length) return "";
      const lane = this.lanes[place];
      const column = this.from + this.width * part;
      const near = (this.width / width) * 5;
      const inside = ([from, to]) => from <= column && column <= to;
      const stolen = lane.steals.filter((steal) => Math.abs(steal.at - column) < near).sort((a, b) => Math.abs(a.at - column) - Math.abs(b.at - column))[0];
      const doing = stolen ? `stole from ${this.names[stolen.victim]}`
        : lane.busy.some(inside) ? "running tasks" : lane.asleep.some(inside) ? "asleep" : "searching for work";
      const shown = (this.width / this.columns) * this.span;
      return `${this.names[place]}, ${time((column / this.columns) * this.span, shown / 100, this.span)}: ${doing}`;
    }
  }

  const slices = (path) => [...path.getAttribute("d").matchAll(/M(\d+) \d+h(\d+)/g)].map(([, from, width]) => [Number(from), Number(from) + Number(width)]);
  const steals = (path, pitch) => [...path.getAttribute("d").matchAll(/M(\d+) (\d+)V/g)].map(([, at, y]) => ({ at: Number(at), victim: Math.floor(Number(y) / pitch) }));

  for (const box of all(".timeline")) new Timeline(box);

  // Shows one run at a time.
  const choice = one("#choice");
  if (choice) {
    const choose = () => { for (const trace of all(".trace")) trace.hidden = trace.dataset.trace !== choice.value; };
    choice.addEventListener("change", choose);
    choice.closest(".choose").hidden = false;
    choose();
  }

  // Copies the command.
  const copy = one("#copy");
  copy.hidden = false;
  copy.addEventListener("click", async () => {
    const command = one("#command");
    try {
      await navigator.clipboard.writeText(command.textContent);
      copy.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(command);
      copy.textContent = "Selected";
    }
    setTimeout(() => { copy.textContent = "Copy"; }, 2000);
  });
})();
