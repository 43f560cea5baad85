package roster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/secrets"
	"github.com/drawbridge-mcp/drawbridge/wire"
)

// A Keeper keeps values by name, outside of files that people read: secrets.Values does. Where there is none of a name, Get's
// error is secrets.ErrNone.
type Keeper interface {
	Get(name string) ([]byte, error)
	Put(name string, value []byte) error
	Delete(name string) error
}

// A Kept is a row whose secrets are with a Keeper: references stand in their places.
type Kept struct {
	// Row is the row as it is to be written now.
	Row json.RawMessage
	// Names are what the values are kept by, in the order of the names in the row.
	Names []string

	keeper Keeper
	fresh  []string // those of Names that were not kept before
	moved  []config.Replacement
}

// movableMembers are the members whose values may be references, by what config.PlainSecrets calls them.
func movableMembers() map[string]string {
	return map[string]string{"env": "env", "header": "headers", "auth": "auth", "oauth": "oauth"}
}

// afterScheme divides a header's value into the scheme, which is no secret, and what follows.
var afterScheme = regexp.MustCompile(`^((?i:bearer|basic|token) +)(\S.*)$`)

// notInName are the characters that the name of a kept value does not have.
var notInName = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// movable finds the secrets of a row that stand there in plain text and may be references. A value that is also the name of a
// variable which is set means that variable.
func movable(row json.RawMessage, lookup func(string) (string, bool)) (all []config.Replacement) {
	for _, plain := range config.PlainSecrets(row) {
		kind, name, _ := strings.Cut(plain, " ")
		member, may := movableMembers()[kind]
		if member == "auth" || member == "oauth" {
			known, public := config.AuthMember(name)
			may = known != "" && !public
		}
		value := wire.GetText(row, member, name)
		variable, isSet := lookup(value)
		if may && value != "" && !strings.HasPrefix(value, "!") && (!isSet || variable == "") {
			all = append(all, config.Replacement{At: []string{member, name}, Was: value})
		}
	}
	return all
}

// Movable counts the secrets of a row that Keep would move.
func Movable(row json.RawMessage, lookup func(string) (string, bool)) int {
	return len(movable(row, lookup))
}

// Keep moves the secrets that stand in a row in plain text to a keeper, under names such as "github.GITHUB_TOKEN", and gives the
// row that refers to them. A name that keeps another value already is left alone: the next one that is free is taken. Each
// value is read back before Keep says that it is kept. Where there is an error, what it kept is taken away again. No value is
// in the error.
func Keep(keeper Keeper, id drawbridge.ServerID, row json.RawMessage, lookup func(string) (string, bool)) (Kept, error) {
	k := Kept{Row: row, keeper: keeper}
	for _, m := range movable(row, lookup) {
		before, value := "", m.Was
		if parts := afterScheme.FindStringSubmatch(value); parts != nil && m.At[0] == "headers" {
			before, value = parts[1], parts[2]
		}
		name, err := k.keep(notInName.ReplaceAllString(string(id)+"."+m.At[1], "_"), value)
		if err != nil {
			return Kept{Row: row}, errors.Join(fmt.Errorf("keep %s of %s: %w", m.At[1], id, err), k.Undo())
		}
		m.Is = before + "${keychain:" + name + "}"
		k.Names, k.moved = append(k.Names, name), append(k.moved, m)
		k.Row = wire.Apply(k.Row, wire.Put(wire.Quote(m.Is), m.At...))
	}
	return k, nil
}

// keep puts a value under a name that keeps nothing else, and gives the name.
func (k *Kept) keep(name, value string) (string, error) {
	const most = 100
	for i := range most {
		free := name
		if i > 0 {
			free = fmt.Sprintf("%s-%d", name, i+1)
		}
		has, err := k.keeper.Get(free)
		switch {
		case err == nil && string(has) == value:
			return free, nil
		case err == nil:
			continue
		case !errors.Is(err, secrets.ErrNone):
			return "", err
		}
		if err := k.keeper.Put(free, []byte(value)); err != nil {
			return "", err
		}
		k.fresh = append(k.fresh, free)
		if has, err := k.keeper.Get(free); err != nil || !bytes.Equal(has, []byte(value)) {
			return "", errors.Join(errors.New("what was kept does not come back"), err)
		}
		return free, nil
	}
	return "", fmt.Errorf("%d names like %q keep other values", most, name)
}

// Undo takes away what Keep kept, for a row that was not written after all. Values that were kept before stay.
func (k Kept) Undo() error {
	var errs []error
	for _, name := range k.fresh {
		errs = append(errs, k.keeper.Delete(name))
	}
	return errors.Join(errs...)
}

// MoveSecrets moves the secrets that stand in a server's row in plain text to the keeper: each is kept before the row refers to
// it. A row of a project that was approved is approved as it is then. The change's Kept are the names of
// the values; none where the row has no such secret.
//
// The error is a Mistake for a name that is not configured, or that no file of ours has; else the file cannot be changed, or a
// value not be kept. The row is as it was then.
func (r *Roster) MoveSecrets(ctx context.Context, id drawbridge.ServerID) (Change, error) {
	roll, err := r.Read(ctx)
	if err != nil {
		return Change{}, err
	}
	var row config.Server
	for _, one := range roll.named(id) {
		if one.Provider == native {
			row = one
			break
		}
	}
	switch rows := roll.named(id); {
	case len(rows) == 0:
		return Change{}, roll.notFound(id)
	case row.ID == "":
		return Change{}, mistake("Server %q is in a file of %s (%s): take it over with drawbridge import --secrets move",
			id, title(rows[0].Provider), rows[0].Origin.Path)
	case r.o.Keeper == nil:
		return Change{}, errNoKeeper
	}
	c := Change{Server: id, Did: Moved, Scope: row.Origin.Kind, Path: row.Origin.Path, Phase: row.Phase, Reason: row.Reason}
	kept, err := Keep(r.o.Keeper, id, row.Row, r.o.Places.LookupEnv)
	if err != nil || len(kept.Names) == 0 {
		return c, err
	}
	if err := config.ReplaceTexts(row.Origin.Path, id, kept.moved); err != nil {
		return Change{}, errors.Join(err, kept.Undo())
	}
	c.Kept = kept.Names
	if row.Origin.Kind == config.Project && row.Phase == drawbridge.Idle {
		if err := r.approveWritten(ctx, id, row.Origin.Path, kept.Row); err != nil {
			c.Notes = append(c.Notes, fmt.Sprintf("it was not approved: %v", err))
		}
	}
	if err := r.settle(ctx, &c); err != nil {
		c.Notes = append(c.Notes, err.Error())
	}
	r.tell(ctx, &c)
	return c, nil
}

// errNoKeeper is for a door that has nothing to keep values with.
var errNoKeeper = errors.New("there is nothing here that keeps secrets")
