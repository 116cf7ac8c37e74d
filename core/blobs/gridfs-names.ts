/** How many names are asked for at a time. */
const namesAtATime = 1_000;

/** A collection whose documents are named by their IDs. */
interface Names {
  find(
    filter: { readonly _id: { readonly $gt: string } },
    options: object,
  ): { toArray(): Promise<{ readonly _id: string }[]> };
}

type Page = readonly { readonly _id: string }[];

/**
 * The IDs in a collection, page by page, each read within `run`. Not by a cursor: the server would end that if whoever goes
 * through the names takes its time.
 */
export async function* namesIn(
  collection: Names,
  run: (page: () => Promise<Page>) => Promise<Page>,
): AsyncGenerator<string> {
  const options = { projection: { _id: 1 }, sort: { _id: 1 }, limit: namesAtATime };
  let after = '';
  for (;;) {
    const from = after;
    const page = await run(async () => await collection.find({ _id: { $gt: from } }, options).toArray());
    for (const { _id } of page) yield _id;
    if (page.length < namesAtATime) return;
    after = page.at(-1)?._id ?? after;
  }
}
