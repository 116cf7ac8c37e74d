import { runCommand } from '../setup/command.ts';

/**
 * Has everything written that waits for its writing. What one side of a comparison leaves to the system would otherwise be
 * written while the other side is measured, and by its flushes.
 */
export async function settleDisk(): Promise<void> {
  await runCommand('sync', []);
}
