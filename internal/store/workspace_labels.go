package store

import (
	"context"
	"database/sql"

	"github.com/drawbridge-mcp/drawbridge/internal/flow"
	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// addLabel stores the label of the write, joined with those of old content that stays in the entity.
func (a *application) addLabel() error {
	label, origin := a.write.Label()
	if a.kept != nil {
		if label == nil {
			label = &flow.Label{Integrity: flow.Trusted}
		}
		joined := label.Join(*a.kept)
		label = &joined
	}
	if label == nil {
		return nil
	}
	return a.exec(`INSERT INTO labels (revision, integrity, confidentiality, origin) VALUES ($1, $2, $3, $4)`,
		string(a.stamp.Revision), int(label.Integrity), int(label.Confidentiality), origin)
}

// joinLabelOf notes that the content of a revision stays in the entity that is written.
func (a *application) joinLabelOf(revision workspace.ID) error {
	rows, err := a.tx.QueryContext(a.ctx, selectLabels+" WHERE r.revision = $1", string(revision))
	if err != nil {
		return err
	}
	label, _, err := joinedLabel(rows)
	if err != nil {
		return err
	}
	if a.kept != nil {
		label = label.Join(*a.kept)
	}
	a.kept = &label
	return nil
}

// selectLabels selects what is known of the labels of revisions.
const selectLabels = `SELECT r.origin, COALESCE(l.integrity, -1), COALESCE(l.confidentiality, 0), COALESCE(l.origin, ''),
	(SELECT COUNT(*) FROM outside_sources AS o WHERE o.revision = r.revision AND o.kind <> 'file')
	FROM revisions AS r LEFT JOIN labels AS l ON l.revision = r.revision`

// Label returns the join of the labels of the content that an entity has or that waits for a decision; for a page, of
// all that is on it. origin explains it. The label of content is stored since labels exist; that of older content
// follows from its origin and its sources.
func (w *Workspace) Label(ctx context.Context, entity workspace.ID) (label flow.Label, origin string, err error) {
	rows, err := w.db.reader.QueryContext(ctx, selectLabels+" WHERE (r.entity = $1 OR r.page = $1) AND r.state IN ('current', 'waiting')", string(entity))
	return w.queriedLabel(rows, err)
}

// RevisionLabel returns the label of the content that a write has made.
func (w *Workspace) RevisionLabel(ctx context.Context, revision workspace.ID) (label flow.Label, origin string, err error) {
	rows, err := w.db.reader.QueryContext(ctx, selectLabels+" WHERE r.revision = $1", string(revision))
	return w.queriedLabel(rows, err)
}

func (w *Workspace) queriedLabel(rows *sql.Rows, err error) (label flow.Label, origin string, _ error) {
	if err == nil {
		label, origin, err = joinedLabel(rows)
	}
	if err != nil {
		return flow.Label{Integrity: flow.Untrusted, Confidentiality: flow.Private}, "", w.db.fault("read a label", err)
	}
	return label, origin, nil
}

// joinedLabel returns the join of the labels of the rows, and closes them.
func joinedLabel(rows *sql.Rows) (label flow.Label, origin string, err error) {
	defer rows.Close()
	label = flow.Label{Integrity: flow.Trusted, Confidentiality: flow.Internal}
	for rows.Next() {
		var written, from string
		var integrity, confidentiality, outside int
		if err := rows.Scan(&written, &integrity, &confidentiality, &from, &outside); err != nil {
			return label, "", err
		}
		one := flow.Label{Integrity: flow.Trusted, Confidentiality: flow.Internal}
		switch o := workspace.Origin(written); {
		case integrity >= 0:
			one = flow.Label{Integrity: flow.Integrity(integrity), Confidentiality: flow.Confidentiality(confidentiality)}
			if o == workspace.Imported || o == workspace.Observed {
				one.Integrity = flow.Untrusted
			}
		case o == workspace.Authored:
		case o == workspace.AgentProduced && outside == 0:
			one.Integrity = flow.Project
		default:
			one.Integrity = flow.Untrusted
		}
		if joined := label.Join(one); joined != label {
			label, origin = joined, from
		}
	}
	return label, origin, rows.Err()
}
