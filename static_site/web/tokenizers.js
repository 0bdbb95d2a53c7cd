// Tokenizers by byte-pair encoding (Sennrich 2016): the translator's, and the writer's byte-level pairs (Radford 2019) with
// tokens as people read them (viz_core/hub/runs).

import { InputError } from "./model.js";

/**
 * A function that merges the parts of a piece: always the pair that was learned first, again and again.
 *
 * @param {[string, string][]} merges in the order in which they were learned
 */
function makeMerge(merges) {
  const ranks = new Map(merges.map(([left, right], rank) => [`${left} ${right}`, rank]));
  return (letters) => {
    const parts = [...letters];
    for (;;) {
      let best = Infinity;
      let at = -1;
      for (let i = 0; i + 1 < parts.length; i += 1) {
        const rank = ranks.get(`${parts[i]} ${parts[i + 1]}`) ?? Infinity;
        if (rank < best) [best, at] = [rank, i];
      }
      if (at < 0) return parts;
      parts.splice(at, 2, parts[at] + parts[at + 1]);
    }
  };
}

const START = "\u2581"; // where a word starts
const BYTE = /^<0x([0-9A-F]{2})>$/;

/** NFKC, plain spaces, straight apostrophes; no invisible or control characters (viz_core/pretrained/tokenization.py). */
export const clean = (text) =>
  text.replace(/[\p{Cf}\p{Cs}]/gu, "").normalize("NFKC").replaceAll("\u2019", "'").replace(/\p{Cc}/gu, " ").split(/\s+/u).filter(Boolean).join(" ");

/**
 * A tokenizer of the format that Hugging Face's tokenizers write.
 *
 * @param {{vocab: string[], merges: [string, string][], pieces: string}} content as static_site/model_files.py writes it
 */
export function makeTokenizer({ vocab, merges, pieces }) {
  const ids = new Map(vocab.map((token, id) => [token, id]));
  const merge = makeMerge(merges);
  const pattern = new RegExp(pieces, "giu");
  const known = new Map(); // of a piece: its ids
  const utf8 = new TextEncoder();

  /** What the text falls into before tokens are sought: words with their mark, then elisions, contractions and signs. */
  function split(text) {
    const marked = text.replaceAll(" ", START);
    const words = (marked.startsWith(START) ? marked : START + marked).match(/\u2581[^\u2581]*/gu) ?? [];
    return words.flatMap((word) => {
      const found = [];
      let at = 0;
      for (const match of word.matchAll(pattern)) {
        found.push(word.slice(at, match.index), match[0]);
        at = match.index + match[0].length;
      }
      return [...found, word.slice(at)].filter(Boolean);
    });
  }

  /** The letters of a piece; one that the vocabulary lacks is spelled by its bytes. */
  function letters(piece) {
    return [...piece].flatMap((letter) => {
      if (ids.has(letter)) return [letter];
      const bytes = [...utf8.encode(letter)].map((byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`);
      return bytes.every((byte) => ids.has(byte)) ? bytes : ["<unk>"];
    });
  }

  function encode(text) {
    return split(text.normalize("NFKC")).flatMap((piece) => {
      if (!known.has(piece)) known.set(piece, merge(letters(piece)).map((part) => ids.get(part)));
      return known.get(piece);
    });
  }

  const isSpecial = (token) => /^<(?!0x)[^<>\s]+>$/.test(token) && ids.get(token) < 4;

  /** The text that tokens stand for: bytes as letters, marks as spaces, special tokens left out. */
  function decode(tokens) {
    let text = "";
    let bytes = [];
    const flush = () => {
      if (!bytes.length) return;
      try {
        text += new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(bytes));
      } catch {
        text += "\ufffd".repeat(bytes.length);
      }
      bytes = [];
    };
    for (const token of tokens.map((id) => vocab[id]).filter((each) => !isSpecial(each))) {
      const byte = token.match(BYTE);
      if (byte) bytes.push(parseInt(byte[1], 16));
      else {
        flush();
        text += token;
      }
    }
    flush();
    return text.replaceAll(START, " ").replace(/^ /, "");
  }

  return { encode, decode, id: (token) => ids.get(token), token: (id) => vocab[id] ?? "<unk>" };
}

/** A token without the mark of a word's start. */
export const readable = (token) => token.replace(/^\u2581/, "") || "\u00b7";

/** Whether a token is a byte of a letter that the vocabulary lacks. */
export const isSpelled = (token) => BYTE.test(token);

/** For each piece the number of its word (viz_core/maps/word_maps.py): marked starts, special tokens, signs, apostrophes. */
export function wordNumbers(pieces) {
  const special = /^(<(?!0x[0-9A-F]{2}>)[^<>\s]+>|\[[A-Z]+\d*\])$/;
  const isStart = (piece) => piece.startsWith(START);
  const starts = pieces.some(isStart);
  const numbers = [];
  let alone = true; // whether the piece before lets nothing join it
  pieces.forEach((piece, i) => {
    const text = piece.replace(/^\u2581+/, "");
    let sign = special.test(text) || !/[\p{L}\p{N}]/u.test(text);
    let joins = starts && !isStart(piece) && !alone && !sign;
    if (starts && !alone && (piece === "'" || piece === "\u2019") && /^\p{L}/u.test(pieces[i + 1] ?? "")) {
      sign = false;
      joins = true; // within a word: don't
    }
    numbers.push(numbers.length ? numbers.at(-1) + (joins ? 0 : 1) : 0);
    alone = special.test(text) || (sign && Boolean(text));
  });
  return numbers;
}

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
 *   static_site/model_files.py writes it
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
