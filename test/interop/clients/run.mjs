// Plays a story with one version of the TypeScript SDK, and prints what it saw as one JSON object:
// node run.mjs v1|v2 STORY URL KEY

import { said } from './told.mjs';

const [version, story, url, key] = process.argv.slice(2);
const { peer } = await import(`./${version}.mjs`);
const { play } = await import(`./${story}.mjs`);
const player = peer(url);
await play(player, key);
await player.client.close();
process.stdout.write(JSON.stringify(said) + '\n');
