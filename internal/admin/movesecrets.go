package admin

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
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// A SecretStore keeps values by name, outside of files that people read: secrets.UserSecrets does. Where there is none
// of a name, Get's error is secrets.ErrNotFound.
type SecretStore interface {
	Get(name string) ([]byte, error)
	Put(name string, value []byte) error
	Delete(name string) error
}

// A MovedSecrets is a row whose secrets are with a Keeper: references stand in their places.
type MovedSecrets struct {
	// Row is the row as it is to be written now.
	Row json.RawMessage
	// Names are what the values are kept by, in the order of the names in the row.
	Names []string

	store        SecretStore
	newNames     []string // those of Names that were not kept before
	replacements []config.TextReplacement
}

// movableMemberNames are the members whose values may be references, by what config.PlaintextSecrets calls them.
func movableMemberNames() map[string]string {
	return map[string]string{"env": "env", "header": "headers", "auth": "auth", "oauth": "oauth"}
}

// authSchemeAndSecret divides a header's value into the scheme, which is no secret, and what follows.
var authSchemeAndSecret = regexp.MustCompile(`^((?i:bearer|basic|token) +)(\S.*)$`)

// invalidNameChars are the characters that the name of a kept value does not have.
var invalidNameChars = regexp.MustCompile(`[^A-Za-z0-9._-]`)

// movableSecrets finds the secrets of a row that stand there in plain text and may be references. A value that is also
// the name of a variable which is set means that variable.
func movableSecrets(row json.RawMessage, lookup func(string) (string, bool)) (all []config.TextReplacement) {
	for _, plain := range config.PlaintextSecrets(row) {
		kind, name, _ := strings.Cut(plain, " ")
		member, may := movableMemberNames()[kind]
		if member == "auth" || member == "oauth" {
			known, public := config.CanonicalAuthMember(name)
			may = known != "" && !public
		}
		value := rawjson.GetString(row, member, name)
		variable, isSet := lookup(value)
		if may && value != "" && !strings.HasPrefix(value, "!") && (!isSet || variable == "") {
			all = append(all, config.TextReplacement{Path: []string{member, name}, Old: value})
		}
	}
	return all
}

// CountMovableSecrets counts the secrets of a row that Keep would move.
func CountMovableSecrets(row json.RawMessage, lookup func(string) (string, bool)) int {
	return len(movableSecrets(row, lookup))
}

// MoveRowSecrets moves the secrets that stand in a row in plain text to a keeper, under names such as
// "github.GITHUB_TOKEN", and gives the row that refers to them. A name that keeps another value already is left alone:
// the next one that is free is taken. Each value is read back before Keep says that it is kept. Where there is an
// error, what it kept is taken away again. No value is in the error.
func MoveRowSecrets(keeper SecretStore, id drawbridge.ServerID, row json.RawMessage, lookup func(string) (string,
	bool)) (MovedSecrets, error) {
	k := MovedSecrets{Row: row, store: keeper}
	for _, m := range movableSecrets(row, lookup) {
		before, value := "", m.Old
		if parts := authSchemeAndSecret.FindStringSubmatch(value); parts != nil && m.Path[0] == "headers" {
			before, value = parts[1], parts[2]
		}
		name, err := k.storeValue(invalidNameChars.ReplaceAllString(string(id)+"."+m.Path[1], "_"), value)
		if err != nil {
			return MovedSecrets{Row: row}, errors.Join(fmt.Errorf("keep %s of %s: %w", m.Path[1], id, err), k.Undo())
		}
		m.New = before + "${keychain:" + name + "}"
		k.Names, k.replacements = append(k.Names, name), append(k.replacements, m)
		k.Row = rawjson.Apply(k.Row, rawjson.Put(rawjson.Quote(m.New), m.Path...))
	}
	return k, nil
}

// storeValue puts a value under a name that keeps nothing else, and gives the name.
func (k *MovedSecrets) storeValue(name, value string) (string, error) {
	const most = 100
	for i := range most {
		free := name
		if i > 0 {
			free = fmt.Sprintf("%s-%d", name, i+1)
		}
		has, err := k.store.Get(free)
		switch {
		case err == nil && string(has) == value:
			return free, nil
		case err == nil:
			continue
		case !errors.Is(err, secrets.ErrNotFound):
			return "", err
		}
		if err := k.store.Put(free, []byte(value)); err != nil {
			return "", err
		}
		k.newNames = append(k.newNames, free)
		if has, err := k.store.Get(free); err != nil || !bytes.Equal(has, []byte(value)) {
			return "", errors.Join(errors.New("what was kept does not come back"), err)
		}
		return free, nil
	}
	return "", fmt.Errorf("%d names like %q keep other values", most, name)
}

// Undo takes away what Keep kept, for a row that was not written after all. Values that were kept before stay.
func (k MovedSecrets) Undo() error {
	var errs []error
	for _, name := range k.newNames {
		errs = append(errs, k.store.Delete(name))
	}
	return errors.Join(errs...)
}

// MoveSecrets moves the secrets that stand in a server's row in plain text to the keeper: each is kept before the row
// refers to it. A row of a project that was approved is approved as it is then. The change's Kept are the names of
// the values; none where the row has no such secret.
//
// The error is a Mistake for a name that is not configured, or that no file of ours has; else the file cannot be
// changed, or a value not be kept. The row is as it was then.
func (r *Service) MoveSecrets(ctx context.Context, id drawbridge.ServerID) (Change, error) {
	roll, err := r.ReadServers(ctx)
	if err != nil {
		return Change{}, err
	}
	var row config.Server
	for _, one := range roll.rowsNamed(id) {
		if one.Provider == nativeProvider {
			row = one
			break
		}
	}
	switch rows := roll.rowsNamed(id); {
	case len(rows) == 0:
		return Change{}, roll.notFoundError(id)
	case row.ID == "":
		return Change{},
			userErrorf("Server %q is in a file of %s (%s): take it over with drawbridge import --secrets move",
				id, programTitle(rows[0].Provider), rows[0].Origin.Path)
	case r.o.Secrets == nil:
		return Change{}, errNoSecretStore
	}
	c := Change{Server: id, Kind: Moved, Scope: row.Origin.Kind, Path: row.Origin.Path, Phase: row.Phase,
		Reason: row.Reason}
	kept, err := MoveRowSecrets(r.o.Secrets, id, row.Raw, r.o.ConfigOptions.LookupEnv)
	if err != nil || len(kept.Names) == 0 {
		return c, err
	}
	if err := config.ReplaceServerTexts(row.Origin.Path, id, kept.replacements); err != nil {
		return Change{}, errors.Join(err, kept.Undo())
	}
	c.SecretNames = kept.Names
	if row.Origin.Kind == config.OriginProject && row.Phase == drawbridge.Idle {
		if err := r.approveWrittenRow(ctx, id, row.Origin.Path, kept.Row); err != nil {
			c.Notes = append(c.Notes, fmt.Sprintf("it was not approved: %v", err))
		}
	}
	if err := r.fillChangeState(ctx, &c); err != nil {
		c.Notes = append(c.Notes, err.Error())
	}
	r.reloadAfter(ctx, &c)
	return c, nil
}

// errNoSecretStore is for a door that has nothing to keep values with.
var errNoSecretStore = errors.New("there is nothing here that keeps secrets")
