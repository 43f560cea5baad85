package roster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/store"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Request asks for a new server: one that Command starts, or one at URL.
type Request struct {
	Name drawbridge.ServerID
	// Scope says which file gets the row: config.Project or config.User; empty means Project.
	Scope config.OriginKind

	Command string
	Args    []string
	Env     []config.Pair

	URL string
	// Type is "http" or "sse"; empty means that it is found out.
	Type    string
	Headers []config.Pair
	// Token becomes the header Authorization, as a bearer token.
	Token string

	// MoveSecrets has secrets that stand in the row in plain text kept by the roster's Keeper.
	MoveSecrets bool
}

// Complete says whether the request says what to add. One that does not is the beginning of a conversation.
func (q Request) Complete() bool { return q.Command != "" || q.URL != "" }

// Row is the request as it is written under its name.
func (q Request) Row() json.RawMessage {
	var edits []wire.Edit
	put := func(name string, value json.RawMessage) { edits = append(edits, wire.Put(value, name)) }
	if q.Type != "" {
		put("type", wire.Quote(q.Type))
	}
	if q.Command != "" {
		put("command", wire.Quote(q.Command))
	}
	if len(q.Args) > 0 {
		put("args", wire.AppendTexts(nil, q.Args...))
	}
	if len(q.Env) > 0 {
		put("env", object(q.Env))
	}
	if q.URL != "" {
		put("url", wire.Quote(q.URL))
	}
	headers := q.Headers
	if q.Token != "" {
		headers = append([]config.Pair{{Name: "Authorization", Value: "Bearer " + q.Token}}, headers...)
	}
	if len(headers) > 0 {
		put("headers", object(headers))
	}
	return wire.Apply(json.RawMessage("{}"), edits...)
}

// object is an object of strings, in the order of pairs. Of two of a name the later one counts.
func object(pairs []config.Pair) json.RawMessage {
	var edits []wire.Edit
	for _, p := range pairs {
		edits = append(edits, wire.Put(wire.Quote(p.Value), p.Name))
	}
	return wire.Apply(nil, edits...)
}

// Add writes a new server to a file of the person's, and where that is the project's file approves what was written: they
// typed it themselves. The server is not started.
//
// The error is a Mistake where the request does not say what to add, else one that begins with "Failed to add server: ":
// the name is taken, the row is not right, the file cannot be written.
func (r *Roster) Add(ctx context.Context, q Request) (Change, error) {
	if !q.Complete() {
		return Change{}, r.unclear()
	}
	path, scope, err := r.file(q.Scope)
	if err != nil {
		return Change{}, err
	}
	kept, err := r.keepOf(q)
	if err == nil {
		if err = config.AddRow(path, q.Name, kept.Row); err != nil {
			err = errors.Join(err, kept.Undo())
		}
	}
	if err != nil {
		return Change{}, r.notAdded(err)
	}
	c := Change{Server: q.Name, Did: Added, Scope: scope, Path: path, Kept: kept.Names}
	if err := r.approveWritten(ctx, q.Name, path, kept.Row); err != nil {
		c.Notes = append(c.Notes, fmt.Sprintf("it was not approved: %v", err))
	}
	if plain := config.PlainSecrets(kept.Row); len(plain) > 0 {
		c.Notes = append(c.Notes, r.inPlain(q.Name, plain, kept.Row))
	}
	if err := r.settle(ctx, &c); err != nil {
		c.Notes = append(c.Notes, err.Error())
	}
	r.tell(ctx, &c)
	return c, nil
}

// keepOf gives the row of a request as it is to be written.
func (r *Roster) keepOf(q Request) (Kept, error) {
	switch {
	case !q.MoveSecrets:
		return Kept{Row: q.Row()}, nil
	case r.o.Keeper == nil:
		return Kept{}, errNoKeeper
	case q.Name.Valid() != nil:
		return Kept{}, q.Name.Valid()
	}
	return Keep(r.o.Keeper, q.Name, q.Row(), r.o.Places.LookupEnv)
}

// inPlain points at secrets that were written in plain text, and says what to do.
func (r *Roster) inPlain(id drawbridge.ServerID, plain []string, row json.RawMessage) string {
	text := "in plain text, and it looks like a secret: " + strings.Join(plain, ", ")
	if Movable(row, r.o.Places.LookupEnv) > 0 {
		text += fmt.Sprintf(" (drawbridge secret move %s has it in the keychain, and so does --secrets move with add)", id)
	}
	return text
}

// unclear is for a quick form that does not say what to add.
func (r *Roster) unclear() error {
	return mistake("Nothing to add: give --url U or -- <command...>. Usage: %s add <name> ...", r.o.Word)
}

// file is where a scope's new rows are written.
func (r *Roster) file(scope config.OriginKind) (string, config.OriginKind, error) {
	if len(r.o.Places.Paths) > 0 {
		return "", scope, Mistake("--mcp names files for one run; servers are added to the project or user config")
	}
	if scope == config.User {
		path, err := config.UserFile(r.o.Places)
		return path, scope, err
	}
	path, err := config.ProjectFile(r.o.Places)
	return path, config.Project, err
}

// A refusedRow is an error of Add for the person, which keeps its cause.
type refusedRow struct {
	cause error
	tip   string
}

func (e refusedRow) Error() string { return "Failed to add server: " + e.cause.Error() + e.tip }
func (e refusedRow) Unwrap() error { return e.cause }

// notAdded says what to do about a row that could not be written.
func (r *Roster) notAdded(err error) error {
	text, tip := err.Error(), ""
	switch {
	case strings.Contains(text, "already exists"):
		tip = fmt.Sprintf(" (see %s list)", r.o.Word)
	case strings.Contains(text, "permission denied"):
		tip = " (check the permissions of the file and its directory)"
	case strings.Contains(text, "no space left"):
		tip = " (check the space on the disk)"
	}
	return refusedRow{err, tip}
}

// approveWritten approves the row of a project's file, if it still says what was written.
func (r *Roster) approveWritten(ctx context.Context, id drawbridge.ServerID, path string, written json.RawMessage) error {
	set, err := config.Load(r.o.Places)
	if err != nil {
		return err
	}
	for _, rows := range [][]config.Server{set.Servers, set.Shadowed} {
		for _, row := range rows {
			if row.ID != id || row.Origin.Kind != config.Project || !sameFile(row.Origin.Path, path) {
				continue
			}
			if !equal(row.Row, written) {
				return errors.New("the file says something else by now")
			}
			if row.Program, err = r.finder(nil).program(row); err != nil {
				return err
			}
			return r.decide(ctx, set, []config.Server{row}, true)
		}
	}
	return nil // it is no project's row, as where the home is the project
}

// decide records a decision about rows, as they were read.
func (r *Roster) decide(ctx context.Context, set config.Set, rows []config.Server, approved bool) error {
	db, err := r.open(ctx, set, true)
	if err != nil {
		return err
	}
	act := gateway.Act{Command: "mcp approve"}
	if !approved {
		act.Command = "mcp reject"
	}
	for _, row := range rows {
		act.Server, act.On, act.Detail = row.ID, row.Origin.Path, "row "+row.Hash
		err = errors.Join(err, r.o.Clerk.Do(act, func() error {
			return db.Approve(ctx, store.Approval{Path: row.Origin.Path, Server: row.ID, Hash: row.Hash, Facts: row.Facts(), Approved: approved})
		}))
	}
	return errors.Join(err, db.Close())
}

// settle says how a server is after a change, and what of it may surprise.
func (r *Roster) settle(ctx context.Context, c *Change) error {
	roll, err := r.Read(ctx)
	if err != nil {
		return err
	}
	rows := roll.named(c.Server)
	if len(rows) == 0 {
		return nil
	}
	first := rows[0]
	if c.Did == Removed {
		c.Phase, c.Reason = first.Phase, first.Reason
		c.Notes = append(c.Notes, fmt.Sprintf("%q is configured at %s too, which counts now", c.Server, first.Origin))
		return nil
	}
	e := roll.at(c.Server, c.Path)
	c.Phase, c.Reason = e.Phase, e.Reason
	if e.Server.Origin != first.Origin && first.Phase == drawbridge.Idle {
		c.Notes = append(c.Notes, fmt.Sprintf("another definition of %q counts before it: %s", c.Server, first.Origin))
	}
	if c.Phase != drawbridge.Idle {
		return nil
	}
	for _, row := range rows[1:] {
		if row.Phase == drawbridge.Idle {
			c.Notes = append(c.Notes, fmt.Sprintf("it counts before the definition at %s", row.Origin))
		}
	}
	if len(e.Unresolved) > 0 {
		c.Notes = append(c.Notes, "variables that are not set: "+strings.Join(e.Unresolved, ", "))
	}
	return nil
}

// at finds the row of a name in a file, or where that has none the one that counts.
func (roll Roll) at(id drawbridge.ServerID, path string) Entry {
	for i, rows := range [][]config.Server{roll.Servers, roll.Shadowed} {
		for _, row := range rows {
			if row.ID == id && sameFile(row.Origin.Path, path) {
				return roll.entry(row, i == 1)
			}
		}
	}
	first, _ := roll.Lookup(id)
	return roll.entry(first, false)
}

func sameFile(a, b string) bool {
	if a == b {
		return true
	}
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// equal says whether two rows say the same, whatever their layout.
func equal(a, b json.RawMessage) bool {
	decode := func(raw json.RawMessage) (v any) {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		if d.Decode(&v) != nil {
			return nil
		}
		return v
	}
	one := decode(a)
	return one != nil && reflect.DeepEqual(one, decode(b))
}
