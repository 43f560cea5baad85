package admin

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
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// An AddRequest contains the parameters of AddServer. The new server is started with Command, or is reached at URL.
type AddRequest struct {
	Name drawbridge.ServerID
	// Scope selects the configuration file to which the server is added: config.OriginProject or config.OriginUser.
	// Empty means OriginProject.
	Scope config.OriginKind

	Command string
	Args    []string
	Env     []config.NameValue

	URL string
	// Type is the transport for URL, "http" or "sse"; empty means that the transport is detected at the first
	// connection.
	Type    string
	Headers []config.NameValue
	// Token is a bearer token for URL; it is written to the file as the header Authorization.
	Token string

	// MoveSecrets stores the request's plain-text secrets in Options.Secrets, and writes references to them to the
	// file.
	MoveSecrets bool
}

// Complete reports whether the request has a command or a URL. If not, RunAddWizard can ask the person for the missing
// values.
func (q AddRequest) Complete() bool { return q.Command != "" || q.URL != "" }

// Split returns the request with a Command that is a whole command line split into Command and Args. If Command is a
// single word, it returns the request unchanged and false.
func (q AddRequest) Split() (AddRequest, bool) {
	words := config.SplitCommandLine(q.Command)
	if words == nil {
		return q, false
	}
	q.Command, q.Args = words[0], append(words[1:], q.Args...)
	return q, true
}

// Row returns the JSON object for the configuration file that describes the new server.
func (q AddRequest) Row() json.RawMessage {
	var edits []rawjson.Edit
	put := func(name string, value json.RawMessage) { edits = append(edits, rawjson.Put(value, name)) }
	if q.Type != "" {
		put("type", rawjson.Quote(q.Type))
	}
	if q.Command != "" {
		put("command", rawjson.Quote(q.Command))
	}
	if len(q.Args) > 0 {
		put("args", rawjson.AppendStrings(nil, q.Args...))
	}
	if len(q.Env) > 0 {
		put("env", jsonObject(q.Env))
	}
	if q.URL != "" {
		put("url", rawjson.Quote(q.URL))
	}
	headers := q.Headers
	if q.Token != "" {
		headers = append([]config.NameValue{{Name: "Authorization", Value: "Bearer " + q.Token}}, headers...)
	}
	if len(headers) > 0 {
		put("headers", jsonObject(headers))
	}
	return rawjson.Apply(json.RawMessage("{}"), edits...)
}

// jsonObject returns a JSON object with the names and string values of pairs, in this order. If two pairs have the same
// name, the later value is used.
func jsonObject(pairs []config.NameValue) json.RawMessage {
	var edits []rawjson.Edit
	for _, p := range pairs {
		edits = append(edits, rawjson.Put(rawjson.Quote(p.Value), p.Name))
	}
	return rawjson.Apply(nil, edits...)
}

// AddServer writes a new server to a configuration file. If this is the project's file, it also stores the approval of
// the new row, because the person has requested it. It does not start the server.
//
// The error is a UserError for an incomplete request, and if Options.ConfigOptions names configuration files. It begins
// with "Failed to add server: " if the name is already used, the row is invalid, or the file cannot be written.
func (r *Service) AddServer(ctx context.Context, q AddRequest) (Change, error) {
	if !q.Complete() {
		return Change{}, r.nothingToAddError()
	}
	path, scope, err := r.configFile(q.Scope)
	if err != nil {
		return Change{}, err
	}
	kept, err := r.rowToWrite(q)
	if err == nil {
		if err = config.AddServer(path, q.Name, kept.Row); err != nil {
			err = errors.Join(err, kept.Undo())
		}
	}
	if err != nil {
		return Change{}, r.wrapAddError(err)
	}
	c := Change{Server: q.Name, Kind: Added, Scope: scope, Path: path, SecretNames: kept.Names}
	if err := r.approveWrittenRow(ctx, q.Name, path, kept.Row); err != nil {
		c.Notes = append(c.Notes, fmt.Sprintf("it was not approved: %v", err))
	}
	if q.Scope == "" && scope == config.OriginProject {
		c.Notes = append(c.Notes, "configured for this directory only; --scope user configures it for all")
	}
	if plain := config.PlaintextSecrets(kept.Row); len(plain) > 0 {
		c.Notes = append(c.Notes, r.plainSecretsNote(q.Name, plain, kept.Row))
	}
	if err := r.fillChangeState(ctx, &c); err != nil {
		c.Notes = append(c.Notes, err.Error())
	}
	r.reloadAfter(ctx, &c)
	return c, nil
}

// rowToWrite returns the row to write for a request. If q.MoveSecrets is set, it first stores the secrets, and the row
// contains references to them.
func (r *Service) rowToWrite(q AddRequest) (MovedSecrets, error) {
	switch {
	case !q.MoveSecrets:
		return MovedSecrets{Row: q.Row()}, nil
	case r.o.Secrets == nil:
		return MovedSecrets{}, errNoSecretStore
	case q.Name.Validate() != nil:
		return MovedSecrets{}, q.Name.Validate()
	}
	return MoveRowSecrets(r.o.Secrets, q.Name, q.Row(), r.o.ConfigOptions.LookupEnv)
}

// plainSecretsNote returns a note for the person. It names the secrets that were written to the file in plain text, and
// the command that moves them to the keychain.
func (r *Service) plainSecretsNote(id drawbridge.ServerID, plain []string, row json.RawMessage) string {
	text := "in plain text, and it looks like a secret: " + strings.Join(plain, ", ")
	if CountMovableSecrets(row, r.o.ConfigOptions.LookupEnv) > 0 {
		text += fmt.Sprintf(" (drawbridge secret move %s has it in the keychain, and so does --secrets move with add)",
			id)
	}
	return text
}

// nothingToAddError returns the error for an AddRequest without a command and without a URL.
func (r *Service) nothingToAddError() error {
	return userErrorf("Nothing to add: give --url U or -- <command...>. Usage: %s add <name> ...", r.o.CommandPrefix)
}

// configFile returns the path of the configuration file to which servers of a scope are added, and the scope of that
// file. An empty scope means the project.
func (r *Service) configFile(scope config.OriginKind) (string, config.OriginKind, error) {
	if len(r.o.ConfigOptions.Paths) > 0 {
		return "", scope, UserError("--mcp names files for one run; servers are added to the project or user config")
	}
	if scope == config.OriginUser {
		path, err := config.UserFile(r.o.ConfigOptions)
		return path, scope, err
	}
	path, err := config.ProjectFile(r.o.ConfigOptions)
	return path, config.OriginProject, err
}

// An addServerError is an error of AddServer, with a text for the person and the underlying error.
type addServerError struct {
	cause error
	tip   string
}

func (e addServerError) Error() string { return "Failed to add server: " + e.cause.Error() + e.tip }
func (e addServerError) Unwrap() error { return e.cause }

// wrapAddError returns the error of AddServer for a server that could not be written to the file. For some causes it
// adds a tip for the person.
func (r *Service) wrapAddError(err error) error {
	text, tip := err.Error(), ""
	switch {
	case strings.Contains(text, "already exists"):
		tip = fmt.Sprintf(" (see %s list)", r.o.CommandPrefix)
	case strings.Contains(text, "permission denied"):
		tip = " (check the permissions of the file and its directory)"
	case strings.Contains(text, "no space left"):
		tip = " (check the space on the disk)"
	}
	return addServerError{err, tip}
}

// approveWrittenRow stores the approval of the row that was written to the project's file at path. It returns an error
// if the file now contains another row of this name.
func (r *Service) approveWrittenRow(ctx context.Context, id drawbridge.ServerID, path string,
	written json.RawMessage) error {
	set, err := config.Load(r.o.ConfigOptions)
	if err != nil {
		return err
	}
	for _, rows := range [][]config.Server{set.Servers, set.Shadowed} {
		for _, row := range rows {
			if row.ID != id || row.Origin.Kind != config.OriginProject || !sameFile(row.Origin.Path, path) {
				continue
			}
			if !equalJSON(row.Raw, written) {
				return errors.New("the file says something else by now")
			}
			if row.Program, err = r.newProgramFinder(nil).findProgram(row); err != nil {
				return err
			}
			return r.storeDecision(ctx, set, []config.Server{row}, true)
		}
	}
	return nil // it is not a project's row, for example if the project is the home directory
}

// storeDecision stores a person's approval or rejection of rows, with the hash of each row. If a row changes later, the
// decision on it is no longer valid.
func (r *Service) storeDecision(ctx context.Context, set config.Configuration, rows []config.Server,
	approved bool) error {
	db, err := r.openStoreForProject(ctx, set, true)
	if err != nil {
		return err
	}
	act := gateway.AdminAction{Command: "mcp approve"}
	if !approved {
		act.Command = "mcp reject"
	}
	for _, row := range rows {
		act.Server, act.Subject, act.Detail = row.ID, row.Origin.Path, "row "+row.Hash
		err = errors.Join(err, r.o.AdminRecorder.Run(act, func() error {
			return db.SaveRowApproval(ctx, store.RowApproval{Path: row.Origin.Path, Server: row.ID, Hash: row.Hash,
				By:    gateway.CurrentApprover(),
				Shown: row.ApprovalFacts(), Approved: approved})
		}))
	}
	return errors.Join(err, db.Close())
}

// fillChangeState sets c.Phase and c.Reason to the state of the server after the change. It also adds notes, for
// example about other rows with the same name, of which only one is used.
func (r *Service) fillChangeState(ctx context.Context, c *Change) error {
	roll, err := r.ReadServers(ctx)
	if err != nil {
		return err
	}
	rows := roll.rowsNamed(c.Server)
	if len(rows) == 0 {
		return nil
	}
	first := rows[0]
	if c.Kind == Removed {
		c.Phase, c.Reason = first.Phase, first.Reason
		c.Notes = append(c.Notes, fmt.Sprintf("%q is configured at %s too, which counts now", c.Server, first.Origin))
		return nil
	}
	e := roll.entryInFile(c.Server, c.Path)
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

// entryInFile returns the row with this name in a file. If the file has no such row, it returns the row with this name
// that takes precedence.
func (roll ServerList) entryInFile(id drawbridge.ServerID, path string) ServerEntry {
	for i, rows := range [][]config.Server{roll.Servers, roll.Shadowed} {
		for _, row := range rows {
			if row.ID == id && sameFile(row.Origin.Path, path) {
				return roll.newEntry(row, i == 1)
			}
		}
	}
	first, _ := roll.Lookup(id)
	return roll.newEntry(first, false)
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

// equalJSON reports whether two JSON values are equal apart from their formatting.
func equalJSON(a, b json.RawMessage) bool {
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
