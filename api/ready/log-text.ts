/** Lines of a container's log as text that a page can show. */
import { stripVTControlCharacters } from 'node:util';

/** Longer lines are cut, because a page becomes unreadable with them. */
const maxLineCharacters = 2000;

/** Control characters except the tab, and those that change the direction of text or are invisible. */
const hidden = /[\p{Cc}\p{Bidi_Control}\p{Zl}\p{Zp}\u200b\u2060\ufeff]/gu;

/**
 * Returns a line without the escape sequences that terminals interpret. Keeps only the last version of a line that overwrites itself,
 * such as a progress bar. Replaces any other control character by �, so that a container cannot hide or reorder what it logged.
 */
export function readableLine(line: string): string {
  const text = stripVTControlCharacters(line);
  const last = text.replace(/\r+$/, '').split('\r').at(-1) ?? '';
  const cut = last.length > maxLineCharacters ? `${last.slice(0, maxLineCharacters)}…` : last;
  return cut.toWellFormed().replaceAll(hidden, (character) => (character === '\t' ? character : '\ufffd'));
}
