package store

import "strings"

// workspaceSchema returns the migration steps of a workspace, as stateSchema has those of the other data. A released
// step is never edited.
func workspaceSchema(d dialect) []string {
	search := searchSQLite
	if !d.isSQLite {
		search = searchPostgres
	}
	return []string{strings.Join(workspaceTables, "\n") + search, workspaceCalls,
		// what is known of where contents come from; a content of a person has no row
		`CREATE TABLE labels (
			revision        TEXT NOT NULL PRIMARY KEY,
			integrity       BIGINT NOT NULL,
			confidentiality BIGINT NOT NULL,
			origin          TEXT NOT NULL -- a source that explains the label
		);`,
	}
}

// stampColumns are the columns of a workspace.Stamp. The time is in milliseconds since 1970.
const stampColumns = `
		revision  TEXT NOT NULL,
		origin    TEXT NOT NULL,
		lifecycle TEXT NOT NULL,
		actor     TEXT NOT NULL,
		thread    TEXT NOT NULL,
		run       TEXT NOT NULL,
		at        BIGINT NOT NULL`

var workspaceTables = []string{
	`CREATE TABLE pages (
		nr      BIGINT NOT NULL PRIMARY KEY, -- in the index of the search
		id      TEXT NOT NULL UNIQUE,
		slug    TEXT NOT NULL UNIQUE,
		title   TEXT NOT NULL,
		parent  TEXT NOT NULL,               -- empty at the top
		folder  BIGINT NOT NULL,
		head    TEXT NOT NULL,
		deleted BIGINT NOT NULL,
		file    TEXT NOT NULL,               -- the path of the imported file in its folder; empty without one
		created BIGINT NOT NULL,` + stampColumns + `
	);
	CREATE INDEX pages_parent ON pages (parent, deleted, title);
	CREATE INDEX pages_file ON pages (file) WHERE file <> '';`,
	`CREATE TABLE blocks (
		id   TEXT NOT NULL PRIMARY KEY,
		page TEXT NOT NULL,
		slot TEXT NOT NULL,
		pos  BIGINT NOT NULL, -- the order in the page
		type TEXT NOT NULL,
		text TEXT NOT NULL,` + stampColumns + `,
		UNIQUE (page, slot)
	);
	CREATE INDEX blocks_page ON blocks (page, pos);`,
	`CREATE TABLE revisions (
		entity TEXT NOT NULL,
		kind   TEXT NOT NULL,
		page   TEXT NOT NULL,   -- of the entity; empty for memory
		text   TEXT NOT NULL,
		digest TEXT NOT NULL,   -- of the text; stays when the text is removed
		state  TEXT NOT NULL,   -- current, past, waiting, rejected or scrubbed
		base   TEXT NOT NULL,   -- the revision that was current when this one was written
		accepted_by TEXT NOT NULL, -- the person who promoted it; empty without one
		accepted_at BIGINT NOT NULL,` + stampColumns + `,
		PRIMARY KEY (entity, revision)
	);
	CREATE INDEX revisions_write ON revisions (revision);
	CREATE INDEX revisions_page ON revisions (page, at);
	CREATE UNIQUE INDEX revisions_current ON revisions (entity) WHERE state = 'current';
	CREATE INDEX revisions_open ON revisions (at) WHERE state = 'waiting' OR (state = 'current' AND lifecycle = 'candidate');`,
	`CREATE TABLE writes (
		revision TEXT NOT NULL PRIMARY KEY,
		change   TEXT NOT NULL,   -- such as CreatePage
		entity   TEXT NOT NULL,   -- empty for a grant
		page     TEXT NOT NULL,   -- of the entity; empty without one
		kind     TEXT NOT NULL,   -- of the actor
		script   BIGINT NOT NULL, -- 1 if a script of the actor made it
		actor    TEXT NOT NULL,
		thread   TEXT NOT NULL,
		run      TEXT NOT NULL,
		at       BIGINT NOT NULL
	);
	CREATE INDEX writes_entity ON writes (entity, at);
	CREATE INDEX writes_page ON writes (page, at);
	CREATE TABLE derivations (
		revision TEXT NOT NULL, -- the content that was made from the source
		derived  TEXT NOT NULL, -- the entity of the revision
		source   TEXT NOT NULL,
		PRIMARY KEY (revision, derived, source)
	);
	CREATE INDEX derivations_source ON derivations (source);
	CREATE INDEX derivations_derived ON derivations (derived);
	CREATE TABLE outside_sources (
		revision TEXT NOT NULL,
		nr       BIGINT NOT NULL,
		kind     TEXT NOT NULL,
		name     TEXT NOT NULL,
		server   TEXT NOT NULL,
		PRIMARY KEY (revision, nr)
	);`,
	`CREATE TABLE deviations (
		id        TEXT NOT NULL PRIMARY KEY,
		entity    TEXT NOT NULL,
		revision  TEXT NOT NULL, -- that disagrees
		canonical TEXT NOT NULL, -- the revision with which it disagrees
		at        BIGINT NOT NULL,
		resolved  BIGINT NOT NULL, -- 0 while it is open
		resolution TEXT NOT NULL
	);
	CREATE INDEX deviations_open ON deviations (resolved, at);
	CREATE TABLE flags (
		entity TEXT NOT NULL PRIMARY KEY, -- derived from what has changed
		page   TEXT NOT NULL,             -- of the entity
		source TEXT NOT NULL,             -- that changed
		at     BIGINT NOT NULL
	);
	CREATE INDEX flags_page ON flags (page);`,
	`CREATE TABLE links (
		block TEXT NOT NULL,
		page  TEXT NOT NULL, -- of the block
		slug  TEXT NOT NULL, -- that it leads to, which need not exist
		PRIMARY KEY (block, slug)
	);
	CREATE INDEX links_slug ON links (slug);
	CREATE INDEX links_page ON links (page);
	CREATE TABLE tags (
		id   TEXT NOT NULL PRIMARY KEY,
		page TEXT NOT NULL,
		tag  TEXT NOT NULL,
		text TEXT NOT NULL, -- the tag; empty if it was removed` + stampColumns + `,
		UNIQUE (page, tag)
	);
	CREATE INDEX tags_tag ON tags (tag);
	CREATE TABLE property_types (
		name TEXT NOT NULL PRIMARY KEY,
		type TEXT NOT NULL
	);
	CREATE TABLE properties (
		id    TEXT NOT NULL PRIMARY KEY,
		page  TEXT NOT NULL,
		name  TEXT NOT NULL,
		items TEXT NOT NULL, -- the values as a JSON array; empty if the property was removed
` + stampColumns[1:] + `,
		UNIQUE (page, name)
	);`,
	`CREATE TABLE attachments (
		id     TEXT NOT NULL PRIMARY KEY,
		page   TEXT NOT NULL,
		name   TEXT NOT NULL,
		type   TEXT NOT NULL,
		digest TEXT NOT NULL, -- the SHA-256 of the bytes
		size   BIGINT NOT NULL,` + stampColumns + `
	);
	CREATE INDEX attachments_page ON attachments (page, name);
	CREATE INDEX attachments_digest ON attachments (digest);
	CREATE TABLE files (
		digest TEXT NOT NULL PRIMARY KEY,
		bytes  BLOB NOT NULL
	);
	CREATE TABLE workspace_grants (
		principal    TEXT NOT NULL PRIMARY KEY,
		capabilities TEXT NOT NULL -- a JSON array
	);
	CREATE TABLE memory (
		id   TEXT NOT NULL PRIMARY KEY,
		tier TEXT NOT NULL,
		name TEXT NOT NULL,
		key  TEXT NOT NULL, -- the conversation or the channel; empty for other tiers
		text TEXT NOT NULL,` + stampColumns + `,
		UNIQUE (tier, key, name)
	);`,
}

// workspaceCalls adds which calls read and wrote. What an earlier release wrote has NULL.
const workspaceCalls = `
	ALTER TABLE outside_sources ADD COLUMN digest TEXT; -- the SHA-256 of the content; hexadecimal
	ALTER TABLE outside_sources ADD COLUMN call TEXT;   -- the audit record of the call that read it
	ALTER TABLE writes ADD COLUMN call TEXT;            -- the audit record of the call that wrote
	ALTER TABLE writes ADD COLUMN tool TEXT;            -- the tool that was called
	CREATE INDEX writes_call ON writes (call) WHERE call IS NOT NULL;
	CREATE TABLE stated_sources (
		revision TEXT NOT NULL PRIMARY KEY, -- of an imported page
		tree     TEXT NOT NULL              -- a workspace.Why: what the export said about the page
	);`

// searchSQLite and searchPostgres are the index of the search: the words of the title and of the text of each page, as
// workspace.Words returns them.
const (
	searchSQLite = `
	CREATE VIRTUAL TABLE page_texts USING fts5 (title, body, content = '', contentless_delete = 1,
		tokenize = 'unicode61 remove_diacritics 0');`
	searchPostgres = `
	CREATE TABLE page_texts (
		rowid BIGINT NOT NULL PRIMARY KEY,
		words tsvector NOT NULL
	);
	CREATE INDEX page_texts_words ON page_texts USING gin (words);`
)
