// Types of the attention view, for `make types`: what Python sends (docs/attention-view.md), what the reader has chosen, and
// what is drawn. Scripts name them in comments; none of this reaches a browser.

// The scripts select and listen to HTML elements alone, in the document or in a shadow root.
interface Element {
  dataset: any; hidden: any; tabIndex: number; title: string; href: string; offsetHeight: number; style: CSSStyleDeclaration;
  focus(): void; click(): void; setAttribute(name: string, value: any): void;
  /** How a token of the sentence was shaded last. */
  appearance: string;
}
interface EventTarget { id: string; dataset: any; closest(selector: string): any; matches(selector: string): boolean }
interface Event { detail: any }
interface Node { host?: HTMLElement; activeElement?: Element }

type Axis = "query" | "key";
/** Layer and head, from 0. */
type Head = [layer: number, head: number];
/** A query and a key, as tokens or words of the map; null where only the other is meant. `by` is the one pointed at. */
interface Cursor { row: number | null; column: number | null; by: Axis }

/** The display options of viz_core/view/state.py; each is a word. */
interface Display {
  mode: string; scale: string; palette: string; unit: string; fold: string; heads: string; how: string; compare: string; other: string;
  sort: string; filter: string; links: string; patches: string; zoom: string;
}
interface ViewState { group: string; layer: number; head: number; pins: string[]; display: Display }

interface Measure { name: string; unit: string; maximum: number; signed?: boolean }
/** `levels`: rows and columns of feature maps that are read at points. `queries`: whether queries are patches too. */
interface MapImage { grid: [rows: number, columns: number]; special: number; queries: boolean; levels: [number, number][] }
/** A kind of maps, with the tokens of both sides and its layers. */
interface Group {
  id: string; label: string; queries_label: string; keys_label: string; query_tokens: string[]; key_tokens: string[];
  query_words: number[] | null; key_words: number[] | null; exact: boolean; measures: Measure[]; image: MapImage | null;
  layers: { number: number; heads: number; rule?: string; signed?: boolean; chooses?: boolean }[];
  provenance: { model: string; revision: string; text: string };
}
interface Base { language: string; words: Record<string, string>; inputs: string[]; beside: string[]; groups: Group[][] }
/** The answer to a request; numbers, and what its kind adds. */
interface Part {
  kind: "exact" | "root" | "bytes"; shape: number[]; values: Float32Array | Uint8Array; most?: number; canvas?: HTMLCanvasElement;
  measures?: any; patterns?: (string | null)[]; changes?: number[];
}
interface Answer { header: any; buffer: ArrayBuffer; start: number }
/** What Python has sent. */
interface Store {
  base: Base | null; stamp: string | null; parts: Map<string, Part>; bytes: number; missing: Set<string>; offline: boolean; folded: Record<string, string> | null;
  offers: string[]; switches: Set<string> | null; derived: Map<string, Float32Array>;
}
/** What is on its way to Python: the reader's changes and requests, each counted. */
interface Channel {
  name: string; turn: number; sentTurn: number; known: string; numRequests: number; requested: string; wanted: Set<string>;
  clicks: number; cell: { id: string; group: string; query: number; key: number } | null;
  sending: number; requesting: number; retrying: number;
}

interface Words {
  text(name: string, values?: Record<string, any>): string; row(names: string[]): string; has(name: string): boolean;
  into(element: Element, name: string, values?: Record<string, any>, tag?: string): void; spoken(sentence: string): string;
  decimal: string; number(value: number): string; signed(value: number): string; plain(value: number): string; tick(value: number): string;
}
interface Theme {
  font: string; text: string; quiet: string; queries: string; keys: string; mark: string; paper: string; heads: string[];
}
interface Paint {
  palette: Uint32Array; signed: boolean; most: number; step(value: number): number; css(step: number): string; ink(step: number): string;
  grow(weight: number): number;
}

/** One side of a group in tokens or in the words they are pieces of. */
interface Units {
  count: number; name(unit: number): string; nameInText(unit: number): string; first(unit: number): number; of(token: number): number;
}
/** A part of a side in bins of `size` units. */
interface Side {
  axis: Units; count: number; size: number; from: number; name(bin: number): string; nameInText(bin: number): string;
  unit(bin: number): number; last(bin: number): number; binOf(unit: number): number | null;
}
/** Which map: heads of a group of an input, combined. */
interface Source { input: number; group: string; heads: Head[]; how: string; unit?: string }
/** The cells of a part of a map, each with how well it is known. */
interface Cells {
  rows: number; columns: number; queries: Side; keys: Side; values: Float32Array; grades: Uint8Array; exact?: boolean; signed?: boolean;
  differs?: boolean; chooses?: boolean; skipped?(row: number, column: number): boolean; input?: number; alone?: Set<number>; image?: MapImage; units?: number[]; axis?: Axis;
  /** Of deformable attention: u, v, weight and feature map of each point. */
  points?: Float32Array;
  weight?(row: number, column: number): number; write?(row: number, column: number): string;
}
interface Link { row: number; column: number; weight: number; head: number }
/** Where a plot's parts go, in pixels; `kind` says which fields there are. */
interface Layout { kind: "map" | "links" | "picture"; width: number; height: number; size: number; [field: string]: any }
/** The elements of a plot by their data-piece. */
interface Stage {
  figure: HTMLElement; titleLine: HTMLElement; stage: HTMLElement; ground: HTMLCanvasElement; marks: HTMLCanvasElement; box: HTMLElement;
  tip: HTMLElement;
}
interface Plot extends Stage { source: Source; cells: Cells; title: string; layout: Layout; links: Link[]; heads?: Head[] }

/** The elements of the view by their data-part. */
interface Parts {
  [name: string]: HTMLElement; filter: HTMLInputElement; search: HTMLInputElement; least: HTMLInputElement; sort: HTMLSelectElement;
  look: HTMLDetailsElement; exports: HTMLDetailsElement;
}

/** A view: what Python has sent, what the reader has chosen, and what is drawn of it. */
interface View {
  parts: Parts; stages: Stage[]; stops: (() => void)[];
  store: Store; channel: Channel; stamp: string | null;
  setStateValue?(name: string, message: object): void;
  setTriggerValue?(name: string, value: string): void;
  render(): void; renderHover(): void;

  // What the reader has chosen; `state` alone is sent to Python.
  state: ViewState | null; cursor: Cursor | null; hovered: Head | null; slot: string; several: boolean; unfolded: boolean; choosing: boolean; search: string;
  /** What a search has found, for the text and the group it was made in. */
  found: any; dragged: boolean;

  // What is drawn, made anew by each `render`.
  width: number; words: Words | null; theme: Theme | null; dark: boolean; paints: { weights: Paint; signed: Paint } | null;
  axes: Record<Axis, Units> | null; plots: Plot[]; unequal: boolean; reading: Cells | null; readable: boolean;
  /** The numbers that are being saved, strip by strip. */
  saving: any;
  speaking: number; waiting: number; zooming: number;
}
