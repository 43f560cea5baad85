package store

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/drawbridge-mcp/drawbridge/internal/workspace"
)

// A storedContent is a row of the revisions.
type storedContent struct {
	content
	state string
	base  workspace.ID
	stamp workspace.Stamp
}

const storedColumns = "entity, page, kind, text, state, base, " + stampNames

func scanStored(rows *sql.Rows) (r storedContent, err error) {
	var s scannedStamp
	err = rows.Scan(append([]any{&r.entity, &r.page, &r.kind, &r.text, &r.state, &r.base}, s.into()...)...)
	r.stamp = s.stamp()
	return r, err
}

// contentsOf returns the contents of a write.
func (a *application) contentsOf(revision workspace.ID) ([]storedContent, error) {
	all, err := selectRows(a.ctx, a.tx, "SELECT "+storedColumns+" FROM revisions WHERE revision = $1 ORDER BY entity", scanStored,
		string(revision))
	if err == nil && len(all) == 0 {
		err = notFound(fmt.Sprintf("revision %.40q", revision))
	}
	return all, err
}

// currentContent returns the content of an entity.
func (a *application) currentContent(entity workspace.ID) (r storedContent, err error) {
	var s scannedStamp
	err = a.scan(fmt.Sprintf("entity %.40q", entity), "SELECT "+storedColumns+` FROM revisions
		WHERE entity = $1 AND state = 'current'`, []any{string(entity)},
		append([]any{&r.entity, &r.page, &r.kind, &r.text, &r.state, &r.base}, s.into()...)...)
	r.stamp = s.stamp()
	return r, err
}

// promote makes the contents of a write canonical. What waits becomes the content of its entity. Contents of the write
// that were replaced meanwhile stay as they are.
func (a *application) promote(c workspace.Promote) error {
	all, err := a.contentsOf(c.Revision)
	if err != nil {
		return err
	}
	done := 0
	for _, r := range all {
		a.receipt.Entity, a.receipt.Page = r.entity, r.page
		switch r.state {
		case waitingRevision:
			err = a.promoteWaiting(r, c.Over)
		case currentRevision:
			if err = a.accept(r); err == nil && r.stamp.Lifecycle == workspace.Retired && isFirst(r) {
				err = a.exec("UPDATE pages SET deleted = 0 WHERE id = $1", string(r.entity))
			}
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
			Reason: fmt.Sprintf("the revision %.40q was rejected, replaced or scrubbed", c.Revision)}
	}
	return a.resolve(c.Revision, "promoted")
}

// isFirst reports whether a content is that with which a page was made.
func isFirst(r storedContent) bool { return r.kind == workspace.PageKind && r.base == "" }

// promoteWaiting puts content that waits in the place of the content of its entity. over is what the person has seen
// there, if it is not what the writer saw.
func (a *application) promoteWaiting(r storedContent, over workspace.ID) error {
	old, err := a.currentContent(r.entity)
	if err != nil {
		return err
	}
	if r.base != old.stamp.Revision && over != old.stamp.Revision {
		return &workspace.Error{Code: workspace.Conflict, Reason: fmt.Sprintf(
			"the content has changed since the revision %.40q was written: it is now the revision %s", r.stamp.Revision, old.stamp.Revision)}
	}
	if err := a.replace(r.entity); err != nil {
		return err
	}
	if err := a.put(r.content, r.stamp); err != nil {
		return err
	}
	if err := a.accept(r); err != nil {
		return err
	}
	return a.flagDerived(r.entity, r.page)
}

// accept makes content canonical in the name of the actor. It becomes or stays the current revision.
func (a *application) accept(r storedContent) error {
	if err := a.exec("UPDATE "+contentColumns[r.kind][0]+" SET lifecycle = 'canonical' WHERE id = $1", string(r.entity)); err != nil {
		return err
	}
	a.textChanged(r.content)
	return a.exec(`UPDATE revisions SET state = 'current', lifecycle = 'canonical', accepted_by = $1, accepted_at = $2
		WHERE entity = $3 AND revision = $4`, a.stamp.By, a.stamp.At.UnixMilli(), string(r.entity), string(r.stamp.Revision))
}

// resolve closes the deviations of a write.
func (a *application) resolve(revision workspace.ID, how string) error {
	return a.exec("UPDATE deviations SET resolved = $1, resolution = $2 WHERE revision = $3 AND resolved = 0",
		a.stamp.At.UnixMilli(), how, string(revision))
}

// reject refuses the contents of a write that are not canonical. What waits is dropped; what is current is retired. A
// page that the write made is deleted, and can be restored.
func (a *application) reject(c workspace.Reject) error {
	all, err := a.contentsOf(c.Revision)
	if err != nil {
		return err
	}
	done := 0
	for _, r := range all {
		a.receipt.Entity, a.receipt.Page = r.entity, r.page
		switch {
		case r.state == waitingRevision:
			err = a.exec("UPDATE revisions SET state = 'rejected', lifecycle = 'retired' WHERE entity = $1 AND revision = $2",
				string(r.entity), string(c.Revision))
		case r.state == currentRevision && r.stamp.Lifecycle != workspace.Canonical:
			if err = a.retireContent(r); err == nil && isFirst(r) {
				err = a.exec("UPDATE pages SET deleted = 1 WHERE id = $1", string(r.entity))
			}
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
			Reason: fmt.Sprintf("the revision %.40q is canonical, or was rejected, replaced or scrubbed", c.Revision)}
	}
	return a.resolve(c.Revision, "rejected")
}

// retireContent makes the current content of an entity retired.
func (a *application) retireContent(r storedContent) error {
	if err := a.exec("UPDATE "+contentColumns[r.kind][0]+" SET lifecycle = 'retired' WHERE id = $1", string(r.entity)); err != nil {
		return err
	}
	if err := a.exec("UPDATE revisions SET lifecycle = 'retired' WHERE entity = $1 AND state = 'current'", string(r.entity)); err != nil {
		return err
	}
	a.textChanged(r.content)
	return a.flagDerived(r.entity, r.page)
}

func (a *application) retire(c workspace.Retire) error { return a.retireAs(c.Entity, "") }

// forget retires an item of memory.
func (a *application) forget(c workspace.Forget) error {
	return a.retireAs(c.Entity, workspace.MemoryKind)
}

// retireAs retires the content of an entity of a kind, or of any kind, if the actor may remove it.
func (a *application) retireAs(entity workspace.ID, kind workspace.Kind) error {
	current, err := a.currentContent(entity)
	if err != nil {
		return err
	}
	a.receipt.Entity, a.receipt.Page = current.entity, current.page
	switch {
	case kind != "" && current.kind != kind:
		return &workspace.Error{Code: workspace.Invalid, Reason: fmt.Sprintf("the entity %.40q is not of the kind %s", entity, kind)}
	case !workspace.Removable(current.stamp, a.write.Actor()):
		return &workspace.Error{Code: workspace.Forbidden, Reason: "only a person removes what a person wrote or accepted"}
	}
	return a.retireContent(current)
}

// derive adds the sources of the write to the content of an entity.
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
	return a.flagFrom("SELECT CAST($1 AS TEXT) UNION SELECT CAST($2 AS TEXT)", entity, page)
}

// flagPage flags what is derived from a page or from anything on it.
func (a *application) flagPage(page workspace.ID) error {
	return a.flagFrom("SELECT entity FROM revisions WHERE page = $2 AND state = 'current'", page, page)
}

// flagFrom flags what is derived from the entities that a query selects, directly or over others: from them, or from
// their pages. Only derivations of current contents count. The query has the parameter $2; $1 is named as the source.
func (a *application) flagFrom(query string, source, page workspace.ID) error {
	s, err := a.prepare(`WITH RECURSIVE changed (id) AS (` + query + `), affected (id, page) AS (
			SELECT r.entity, r.page FROM changed
				JOIN derivations AS d ON d.source = changed.id
				JOIN revisions AS r ON r.entity = d.derived AND r.revision = d.revision AND r.state = 'current'
			UNION
			SELECT r.entity, r.page FROM affected AS a
				JOIN derivations AS d ON d.source IN (a.id, a.page)
				JOIN revisions AS r ON r.entity = d.derived AND r.revision = d.revision AND r.state = 'current'
		)
		INSERT INTO flags (entity, page, source, at) SELECT id, page, $1, $3 FROM affected
			WHERE id NOT IN (SELECT id FROM changed)
		ON CONFLICT (entity) DO UPDATE SET source = excluded.source, at = excluded.at`)
	if err != nil {
		return err
	}
	done, err := s.ExecContext(a.ctx, string(source), string(page), a.stamp.At.UnixMilli())
	if err != nil {
		return err
	}
	n, err := done.RowsAffected()
	a.receipt.Flagged += int(n)
	return err
}
