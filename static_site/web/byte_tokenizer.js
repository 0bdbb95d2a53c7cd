// The writer's tokenizer: byte-level pairs (Radford 2019), and tokens as people read them (viz_core/hub/runs).

import { InputError } from "./errors.js";
import { makeMerge } from "./pairs.js";

const SPACE = "\u00b7"; // stands for the space before a word
const SIGNS = { "\n": "\u21b5", "\r": "\u21b5", "\t": "\u21e5" };
const WORDS = /'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\p{White_Space}\p{L}\p{N}]+|\p{White_Space}+(?!\P{White_Space})|\p{White_Space}+/gu;
const JOINER = "\u200d";

/** No control characters and halves of characters but line ends and tabs (`clean_text` of viz_core/hub/runs/tokenizers.py). */
const cleanText = (text) => text.replace(/\r\n?/gu, "\n").replace(/[\p{Cc}\p{Cs}]/gu, (sign) => ("\n\t".includes(sign) ? sign : ""));

/** The signs by which byte-level vocabularies write the 256 bytes. */
function signsOfBytes() {
  const isPrinted = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  let others = 0;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isPrinted(byte) ? byte : 256 + others++));
}

/**
 * @param {{vocab: string[], merges: [string, string][], split: string, special: string[]}} content as
 *   static_site/tokenizers.py writes it
 */
export function makeByteTokenizer({ vocab, merges, split, special }) {
  const ids = new Map(vocab.map((token, id) => [token, id]));
  const merge = makeMerge(merges);
  const signs = signsOfBytes();
  const bytesOf = new Map(signs.map((sign, byte) => [sign, byte]));
  const utf8 = new TextEncoder();
  const isolated = new RegExp(`(${split})`, "u");
  const escaped = special.map((token) => token.replace(/[|\\/]/gu, "\\$&"));
  const specials = new RegExp(`(${escaped.join("|")})`, "u");
  const isSpecial = (id) => special.includes(vocab[id]);

  const idsOf = (piece) => merge([...utf8.encode(piece)].map((byte) => signs[byte])).map((part) => ids.get(part));

  function encode(text) {
    return text.split(specials).filter(Boolean).flatMap((part) => {
      if (special.includes(part)) return [ids.get(part)];
      const words = ` ${part.normalize("NFKC")}`.split(isolated).filter(Boolean);
      return words.flatMap((piece) => piece.match(WORDS)).flatMap(idsOf);
    });
  }

  const bytes = (id) => Uint8Array.from([...vocab[id]], (sign) => bytesOf.get(sign));

  /** The text that tokens stand for, without special ones and spaces around it. */
  function decode(some) {
    const content = some.filter((id) => !isSpecial(id)).flatMap((id) => [...bytes(id)]);
    return new TextDecoder("utf-8", { ignoreBOM: true }).decode(Uint8Array.from(content)).replace(/^ +| +$/gu, "");
  }

  /** Tokens with `label`, `text`, `startsWord` and `special`; one of several tokens of a character is labelled "🎉 1/3". */
  function read(some) {
    const tokens = [];
    let run = []; // tokens whose bytes are not yet a whole character
    const flush = () => {
      tokens.push(...labelled(run));
      run = [];
    };
    for (const id of some) {
      if (isSpecial(id)) {
        flush();
        tokens.push({ label: vocab[id], text: vocab[id], startsWord: false, special: true });
        continue;
      }
      const whole = bytes(id);
      const startsWord = whole[0] === 32;
      const piece = { content: [...(startsWord ? whole.subarray(1) : whole)], startsWord };
      if (run.length && stateOf([...run, piece]) === "broken") flush();
      run.push(piece);
      if (stateOf(run) !== "open") flush();
    }
    flush();
    return tokens;
  }

  return { encode, decode, read, id: (token) => ids.get(token) };
}

function textOf(run) {
  const content = Uint8Array.from(run.flatMap(({ content: part }) => part));
  return { content, text: (options) => new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(content, options) };
}

/** Whether bytes are characters ("whole"), the beginning of some ("open"), or neither. */
function stateOf(run) {
  const { text } = textOf(run);
  try {
    text();
    return "whole";
  } catch {
    try {
      text({ stream: true });
      return "open";
    } catch {
      return "broken";
    }
  }
}

function labelled(run) {
  const { text } = textOf(run);
  let characters = "";
  const of = (label, startsWord) => ({ label: `${startsWord ? SPACE : ""}${label}`, text: characters, startsWord, special: false });
  try {
    characters = text();
  } catch {
    return run.map(({ content, startsWord }) => of(`<${content.map((byte) => byte.toString(16).toUpperCase().padStart(2, "0")).join(" ")}>`, startsWord));
  }
  if (run.length === 1) {
    const [{ startsWord }] = run;
    return [of(visible(characters) || (startsWord ? "" : SPACE), startsWord)];
  }
  return run.map(({ startsWord }, i) => of(`${visible(characters)} ${i + 1}/${run.length}`, startsWord));
}

/** Invisible characters as signs, or by their number (`visible` of viz_core/hub/runs/token_text.py). */
function visible(text) {
  if (!text) return "";
  if (/^\p{White_Space}+$/u.test(text)) return [...text].map((sign) => SIGNS[sign] ?? "\u2423").join("");
  const shown = [...text].map((sign) => SIGNS[sign] ?? sign);
  const isHidden = (sign) => /[\p{C}\u2028\u2029]/u.test(sign);
  const hidden = shown.filter(isHidden);
  if (!hidden.length) return shown.join("");
  const isJoined = hidden.every((sign) => sign === JOINER) && shown[0] !== JOINER && shown.at(-1) !== JOINER;
  const named = (sign) => (/\p{C}/u.test(sign) ? `U+${sign.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}` : sign);
  return (isJoined ? shown : shown.map(named)).join("");
}

/** For each token the number of its word: a special token is one of its own. */
export function wordsOf(tokens) {
  let word = -1;
  let afterSpecial = true;
  return tokens.map(({ startsWord, special }) => {
    if (word < 0 || startsWord || special || afterSpecial) word += 1;
    afterSpecial = special;
    return word;
  });
}

/** Token ids of a text between special ones; refuses what the library refuses. */
export function encodeText(tokenizer, text, room, before, after) {
  const cleaned = cleanText(text);
  if (!cleaned.trim()) throw new InputError("empty");
  const ids = [...before, ...tokenizer.encode(cleaned), ...after];
  if (ids.length > room) throw new InputError("too-many", { count: ids.length, most: room });
  return ids;
}
