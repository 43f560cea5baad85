package store

import (
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// A storedRevision is a row of the revisions of a write.
type storedRevision struct {
	content
	state string
	stamp workspace.Stamp
}

// revisionsOf returns the contents of a write that a person can accept: those that are current or wait.
func (a *application) revisionsOf(revision workspace.ID) (all []storedRevision, err error) {
	rows, err := a.tx.QueryContext(a.ctx, "SELECT entity, page, kind, text, state, "+stampNames+` FROM revisions
		WHERE revision = $1 ORDER BY entity`, string(revision))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var r storedRevision
		var s scannedStamp
		if err := rows.Scan(append([]any{&r.entity, &r.page, &r.kind, &r.text, &r.state}, s.into()...)...); err != nil {
			return nil, err
		}
		r.stamp = s.stamp()
		all = append(all, r)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, notFound(fmt.Sprintf("revision %.40q", revision))
	}
	return all, nil
}

// promote makes the contents of a write canonical. What waits becomes the content of its entity. Contents of the write
// that were replaced meanwhile stay as they are.
func (a *application) promote(c workspace.Promote) error {
	all, err := a.revisionsOf(c.Revision)
	if err != nil {
		return err
	}
	done := 0
	for _, r := range all {
		a.receipt.Entity, a.receipt.Page = r.entity, r.page
		if r.state != currentRevision && r.state != waitingRevision {
			continue
		}
		done++
		r.stamp.Lifecycle = workspace.Canonical
		if r.state == waitingRevision {
			if err := a.exec("UPDATE revisions SET state = $1 WHERE entity = $2 AND state = $3", pastRevision, string(r.entity),
				currentRevision); err != nil {
				return err
			}
			if err := a.put(r.content, r.stamp); err != nil {
				return err
			}
			if err := a.flagDerived(r.entity, r.page); err != nil {
				return err
			}
		} else if err := a.setStamp(contentColumns[r.kind][0], r.entity, r.stamp); err != nil {
			return err
		}
		if err := a.exec(`UPDATE revisions SET state = $1, lifecycle = $2, accepted_by = $3, accepted_at = $4
			WHERE entity = $5 AND revision = $6`, currentRevision, string(workspace.Canonical), a.stamp.By, a.stamp.At.UnixMilli(),
			string(r.entity), string(c.Revision)); err != nil {
			return err
		}
	}
	if done == 0 {
		return &workspace.Error{Code: workspace.Conflict, Reason: fmt.Sprintf("the revision %.40q was rejected or replaced", c.Revision)}
	}
	return a.resolve(c.Revision, "promoted")
}

// resolve closes the deviations of a write.
func (a *application) resolve(revision workspace.ID, how string) error {
	return a.exec("UPDATE deviations SET resolved = $1, resolution = $2 WHERE revision = $3 AND resolved = 0",
		a.stamp.At.UnixMilli(), how, string(revision))
}

// reject refuses the contents of a write that are not canonical. What waits is dropped; what is current is retired.
func (a *application) reject(c workspace.Reject) error {
	all, err := a.revisionsOf(c.Revision)
	if err != nil {
		return err
	}
	done := 0
	for _, r := range all {
		a.receipt.Entity, a.receipt.Page = r.entity, r.page
		switch {
		case r.state == waitingRevision:
			err = a.exec("UPDATE revisions SET state = $1, lifecycle = $2 WHERE entity = $3 AND revision = $4", rejectedRevision,
				string(workspace.Retired), string(r.entity), string(c.Revision))
		case r.state == currentRevision && r.stamp.Lifecycle != workspace.Canonical:
			err = a.retireContent(r.content)
		default:
			continue
		}
		if err != nil {
			return err
		}
		done++
	}
	if done == 0 {
		return &workspace.Error{Code: workspace.Conflict,
			Reason: fmt.Sprintf("the revision %.40q is canonical, or was rejected or replaced", c.Revision)}
	}
	return a.resolve(c.Revision, "rejected")
}

func (a *application) retireContent(c content) error {
	if err := a.exec("UPDATE "+contentColumns[c.kind][0]+" SET lifecycle = $1 WHERE id = $2", string(workspace.Retired),
		string(c.entity)); err != nil {
		return err
	}
	if err := a.exec("UPDATE revisions SET lifecycle = $1 WHERE entity = $2 AND state = $3", string(workspace.Retired),
		string(c.entity), currentRevision); err != nil {
		return err
	}
	if c.kind == workspace.BlockKind {
		if err := a.indexPage(c.page); err != nil {
			return err
		}
	}
	return a.flagDerived(c.entity, c.page)
}

func (a *application) retire(c workspace.Retire) error {
	current, err := a.currentContent(c.Entity)
	if err != nil {
		return err
	}
	a.receipt.Entity, a.receipt.Page = current.entity, current.page
	return a.retireContent(current)
}

// currentContent returns the content of an entity.
func (a *application) currentContent(entity workspace.ID) (c content, err error) {
	c.entity = entity
	err = a.scan(fmt.Sprintf("entity %.40q", entity), "SELECT page, kind, text FROM revisions WHERE entity = $1 AND state = $2",
		[]any{string(entity), currentRevision}, &c.page, &c.kind, &c.text)
	return c, err
}

// derive adds the sources of the write to an entity, which carryOut does for the entity of the receipt.
func (a *application) derive(c workspace.Derive) error {
	current, err := a.currentContent(c.Entity)
	if err != nil {
		return err
	}
	if len(a.write.Sources()) == 0 {
		return &workspace.Error{Code: workspace.Invalid, Reason: "the sources are missing"}
	}
	a.receipt.Entity, a.receipt.Page = current.entity, current.page
	return nil
}

func (a *application) revalidate(c workspace.Revalidate) error {
	current, err := a.currentContent(c.Entity)
	if refusal, ok := errors.AsType[*workspace.Error](err); err != nil && !(ok && refusal.Code == workspace.NotFound) {
		return err
	}
	a.receipt.Entity, a.receipt.Page = c.Entity, current.page
	return a.execOne(fmt.Sprintf("flag of the entity %.40q", c.Entity), "DELETE FROM flags WHERE entity = $1", string(c.Entity))
}

// flagDerived flags what is derived from an entity or from its page, directly or over others.
func (a *application) flagDerived(entity, page workspace.ID) error {
	done, err := a.tx.ExecContext(a.ctx, `WITH RECURSIVE affected (id) AS (
			SELECT derived FROM derivations WHERE source = $1 OR source = $2
			UNION
			SELECT d.derived FROM derivations AS d JOIN affected ON d.source = affected.id
		)
		INSERT INTO flags (entity, source, at) SELECT id, $1, $3 FROM affected WHERE id <> $1 AND id <> $2
		ON CONFLICT (entity) DO UPDATE SET source = excluded.source, at = excluded.at`, string(entity), string(page),
		a.stamp.At.UnixMilli())
	if err != nil {
		return err
	}
	n, err := done.RowsAffected()
	a.receipt.Flagged += int(n)
	return err
}
