package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/drawbridge-mcp/drawbridge/internal/lazyregexp"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/secrets"
)

// A SecretStore stores secrets by name, outside the configuration files. secrets.UserSecrets implements it. Get must
// return secrets.ErrNotFound for an unknown name.
type SecretStore interface {
	Get(name string) ([]byte, error)
	Put(name string, value []byte) error
	Delete(name string) error
}

// MovedSecrets is the result of MoveRowSecrets: a server's configuration row in which references replace the secrets
// that were stored in a SecretStore.
type MovedSecrets struct {
	// Row is the row with the references.
	Row json.RawMessage
	// Names are the names under which the secrets are stored. They are in the order of the secrets in the row.
	Names []string

	store        SecretStore
	newNames     []string // names of values that were not stored before
	replacements []config.TextReplacement
}

// movableMemberNames returns the members of a row whose values may be references to stored secrets. The keys are the
// words with which config.PlaintextSecrets names these members.
func movableMemberNames() map[string]string {
	return map[string]string{"env": "env", "header": "headers", "auth": "auth", "oauth": "oauth"}
}

// authSchemeAndSecret matches the value of a header such as "Bearer SECRET". The first group is the scheme, which is
// not a secret, and the second group is the secret.
var authSchemeAndSecret = lazyregexp.New(`^((?i:bearer|basic|token) +)(\S.*)$`)

// invalidNameChars matches the characters that MoveRowSecrets replaces with "_" in the name of a stored secret.
var invalidNameChars = lazyregexp.New(`[^A-Za-z0-9._-]`)

// movableSecrets returns the plain-text secrets of a row that can be replaced with references; New is not set yet. It
// omits a value that equals the name of an environment variable that is set, because such a value refers to the
// variable.
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

// CountMovableSecrets returns the number of secrets that MoveRowSecrets would move to a store.
func CountMovableSecrets(row json.RawMessage, lookup func(string) (string, bool)) int {
	return len(movableSecrets(row, lookup))
}

// MoveRowSecrets stores the plain-text secrets of a row in keeper, under names such as "github.GITHUB_TOKEN". It
// returns the row with references to the stored secrets; it does not change the configuration file. If a name already
// has another value, a number is added to the name. After it has stored a secret, it reads the secret back, and fails
// if the value differs. After an error it removes the secrets that it has stored. The error does not contain secrets.
func MoveRowSecrets(keeper SecretStore, id drawbridge.ServerID, row json.RawMessage, lookup func(string) (string,
	bool)) (MovedSecrets, error) {
	k := MovedSecrets{Row: row, store: keeper}
	for _, m := range movableSecrets(row, lookup) {
		before, value := "", m.Old
		if parts := authSchemeAndSecret().FindStringSubmatch(value); parts != nil && m.Path[0] == "headers" {
			before, value = parts[1], parts[2]
		}
		name, err := k.storeValue(invalidNameChars().ReplaceAllString(string(id)+"."+m.Path[1], "_"), value)
		if err != nil {
			return MovedSecrets{Row: row}, errors.Join(fmt.Errorf("keep %s of %s: %w", m.Path[1], id, err), k.Undo())
		}
		m.New = before + "${keychain:" + name + "}"
		k.Names, k.replacements = append(k.Names, name), append(k.replacements, m)
		k.Row = rawjson.Apply(k.Row, rawjson.Put(rawjson.Quote(m.New), m.Path...))
	}
	return k, nil
}

// storeValue stores a secret and returns the name under which it is stored. If the name already has another value, it
// adds a number to the name. If the name already has the same value, it stores nothing.
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

// Undo removes the secrets that MoveRowSecrets stored. It is called if the row with the references could not be
// written. It does not remove secrets that were stored before.
func (k MovedSecrets) Undo() error {
	var errs []error
	for _, name := range k.newNames {
		errs = append(errs, k.store.Delete(name))
	}
	return errors.Join(errs...)
}

// MoveSecrets stores the plain-text secrets of a server in Options.Secrets, and replaces them in the configuration file
// with references. If the server is an approved server of a project, its changed row is approved too.
// Change.SecretNames are the names of the stored secrets; it is empty if the row has no such secrets.
//
// The error is a UserError for a name that is not configured, or that is only in files of other programs. Any other
// error means that the file cannot be changed or a secret cannot be stored. After an error the file is unchanged.
func (r *Service) MoveSecrets(ctx context.Context, id drawbridge.ServerID) (c Change, err error) {
	err = r.o.AdminRecorder.Run(gateway.AdminAction{Command: "secret move", Server: id}, func() (err error) {
		c, err = r.moveSecrets(ctx, id)
		return err
	})
	if err != nil {
		return Change{}, err
	}
	return c, nil
}

func (r *Service) moveSecrets(ctx context.Context, id drawbridge.ServerID) (Change, error) {
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

// errNoSecretStore is the error of functions that need Options.Secrets or Options.OpenVault, if that option is nil.
var errNoSecretStore = errors.New("there is nothing here that keeps secrets")
