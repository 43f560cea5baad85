package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/internal/mcp"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

// MemoryStore is the value of [Config.Store] for a store in memory, which is lost when the gateway is closed.
const MemoryStore = ":memory:"

// StoreLocation returns the location of the store. That is flag if it is not empty, else the store in the settings,
// else drawbridge/drawbridge.db under $XDG_STATE_HOME or ~/.local/state. lookup looks up environment variables; nil
// means os.LookupEnv. The error is a *drawbridge.Fault with the code InvalidInput if the home directory is unknown, or
// if store.CheckLocation refuses the location.
func StoreLocation(flag string, s config.Settings, lookup func(string) (string, bool)) (string, error) {
	for _, place := range []string{flag, s.StoreURL, s.StorePath} {
		if place != "" {
			return store.CheckLocation(place)
		}
	}
	dir, ok := StateDir(lookup)
	if !ok {
		return "", &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput,
			Step: "locate the store", Err: errors.New("the home directory is unknown"), Next: "--store PATH",
		}
	}
	return filepath.Join(dir, "drawbridge.db"), nil
}

// StateDir returns the directory of the files that Drawbridge itself writes: "drawbridge" in $XDG_STATE_HOME or
// ~/.local/state. It returns false if the home directory is unknown. lookup looks up environment variables; nil means
// os.LookupEnv.
func StateDir(lookup func(string) (string, bool)) (string, bool) {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	if state, _ := lookup("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "drawbridge"), true
	}
	for _, variable := range []string{"HOME", "USERPROFILE"} {
		if home, _ := lookup(variable); home != "" {
			return filepath.Join(home, ".local", "state", "drawbridge"), true
		}
	}
	return "", false
}

// openStore opens the store. The error is a *drawbridge.Fault if the location had another store before, which is now
// missing. A gateway must not run with a new, empty store then, because approvals, pins and records would be missing.
func openStore(ctx context.Context, c Config, s config.Settings) (*store.DB, error) {
	place, err := placeOfStore(c.Store, s, c.LookupEnv)
	if err == nil {
		err = place.checkFile()
	}
	if err != nil {
		return nil, err
	}
	db, err := store.Open(ctx, place.named, store.Options{})
	if err == nil {
		if err := place.checkStore(ctx, db); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	if f, ok := errors.AsType[*drawbridge.Fault](err); ok {
		told := *f
		if told.Next != "" {
			told.Next += "; or "
		}
		told.Next += "name another place with --store"
		return nil, &told
	}
	return db, err
}

// LedgerStream returns the name of the ledger's stream for a configuration. It is "deck" for the default files. A
// configuration with explicit paths has a separate stream, so that a command with other files does not retire the cards
// of the default deck. A directory with approved servers of a project has a separate stream, too.
func LedgerStream(set config.Configuration, paths []string, dir string) string {
	if len(paths) == 0 {
		inForce := func(row config.Server) bool {
			return row.Origin.Kind == config.OriginProject && row.Phase == drawbridge.Idle
		}
		if !slices.ContainsFunc(set.Servers, inForce) {
			return "deck"
		}
		paths = []string{dir}
	}
	var all []string
	for _, value := range paths {
		for path := range strings.SplitSeq(value, ",") {
			if path = strings.TrimSpace(path); !filepath.IsAbs(path) {
				path = filepath.Join(dir, path)
			}
			if abs, err := filepath.Abs(path); err == nil {
				path = abs
			}
			all = append(all, path)
		}
	}
	return hashedStream(all)
}

// configStream returns the name of a gateway's ledger stream. If c.Servers is not empty, the name depends on the names
// of these servers too.
func configStream(c Config, set config.Configuration) string {
	if len(c.Servers) == 0 {
		return LedgerStream(set, c.Paths, c.Dir)
	}
	all := []string{LedgerStream(set, c.Paths, c.Dir)}
	for _, row := range c.Servers {
		all = append(all, string(row.ID))
	}
	return hashedStream(all)
}

// hashedStream returns the name of a ledger stream, which contains a hash of the parts.
func hashedStream(parts []string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return "deck:" + hex.EncodeToString(sum[:4])
}

// processOwner returns the user of the operating system as a caller with all scopes.
func processOwner() drawbridge.Caller {
	name := strconv.Itoa(os.Getuid())
	if u, err := user.Current(); err == nil && u.Username != "" {
		name = u.Username
	}
	return drawbridge.Caller{
		Kind: drawbridge.External, Principal: name, Scopes: []drawbridge.Scope{"*"},
		Era: drawbridge.Modern, Protocol: mcp.Version20260728,
	}
}

// completeRow checks a server of Config.Servers or AddServer and sets its missing fields. It returns an error if a
// server in before has the same name.
func completeRow(row config.Server, before []config.Server) (config.Server, error) {
	var problem error
	switch {
	case row.ID.Validate() != nil:
		problem = row.ID.Validate()
	case hasRowNamed(before, row.ID):
		problem = errors.New("the name is taken")
	case (row.Command == "") == (row.URL == ""):
		problem = errors.New("either Command or URL is needed")
	}
	if problem != nil {
		return row, &drawbridge.Fault{
			Kind: drawbridge.BridgeFault, Code: drawbridge.InvalidInput,
			Step: fmt.Sprintf("add server %q", row.ID), Err: problem,
		}
	}
	if row.Type == "" && row.Command != "" {
		row.Type = "stdio"
	}
	if row.Origin.Kind == "" {
		row.Origin = config.Origin{Kind: config.OriginExplicit, Path: "the program"}
	}
	row.Phase, row.Reason, row.Enabled = drawbridge.Idle, "", true
	if row.Hash == "" {
		row.Hash = rowHash(row)
	}
	return row, nil
}

// ResolveProgram returns the program file that the command of a stdio server refers to, with the hash of the file.
// environ is the environment, as "name=value". It returns an error if the file does not exist or cannot be run.
func ResolveProgram(row config.Server, environ []string) (config.ProgramFile, error) {
	path, _, err := ResolveProcess(row, config.Settings{}, environ)
	if err != nil {
		return config.ProgramFile{}, err
	}
	return config.HashProgram(path)
}

// rowHash returns the configuration hash of a server that the embedding program adds. The hash is the key under which
// the store keeps the server's data. It does not include values of variables and headers, because they may be secrets.
func rowHash(row config.Server) string {
	var names []string
	for _, p := range row.Env {
		names = append(names, "env "+p.Name)
	}
	for _, p := range row.Headers {
		names = append(names, "header "+p.Name)
	}
	// Marshal cannot fail for texts
	text, _ := json.Marshal([]any{row.ID, row.Type, row.Command, row.Args, row.Cwd, row.URL, names})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// readSecretFile returns the content of a file with one secret, without surrounding blanks. The error names the kind of
// secret and never contains the content.
func readSecretFile(kind, path string) (string, error) {
	b, err := os.ReadFile(path)
	text := strings.TrimSpace(string(b))
	if err == nil && text == "" {
		err = errors.New("the file is empty")
	}
	if err != nil {
		return "", &drawbridge.Fault{
			Kind: drawbridge.Backend, Code: drawbridge.InvalidInput, Step: fmt.Sprintf("read the %s file %s", kind,
				path), Err: err,
		}
	}
	return text, nil
}
