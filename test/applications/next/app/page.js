'use client';

import { useEffect, useState } from 'react';
import { words } from './words.js';

export default function Page() {
  const [runs, setRuns] = useState(false);
  useEffect(() => setRuns(true), []);
  return (
    <>
      <h1>{words}</h1>
      <p>{runs ? 'The page runs' : ''}</p>
    </>
  );
}
