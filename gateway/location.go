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

// MemoryStore is the Store of a gateway that keeps everything in memory.
const MemoryStore = ":memory:"

// StoreLocation returns the location of the store: flag, else the store in the settings, else drawbridge/drawbridge.db
// under $XDG_STATE_HOME or ~/.local/state. Lookup finds variables of the environment; nil means os.LookupEnv. The error
// is a *drawbridge.Fault with the code InvalidInput if the home directory is unknown, or store.CheckLocation refuses
// the location.
func StoreLocation(flag string, s config.Settings, lookup func(string) (string, bool)) (string, error) {
	if lookup == nil {
		lookup = os.LookupEnv
	}
	for _, place := range []string{flag, s.StoreURL, s.StorePath} {
		if place != "" {
			return store.CheckLocation(place)
		}
	}
	if state, _ := lookup("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "drawbridge", "drawbridge.db"), nil
	}
	for _, variable := range []string{"HOME", "USERPROFILE"} {
		if home, _ := lookup(variable); home != "" {
			return filepath.Join(home, ".local", "state", "drawbridge", "drawbridge.db"), nil
		}
	}
	return "", &drawbridge.Fault{
		Kind: drawbridge.Backend, Code: drawbridge.InvalidInput,
		Step: "locate the store", Err: errors.New("the home directory is unknown"), Next: "--store PATH",
	}
}

// openStore opens the store. A gateway does not run without one, since approvals, pins and records would be lost. The
// error is a *drawbridge.Fault if the store that was there before is gone.
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

// LedgerStream returns the name of the ledger's stream for a configuration: "deck" for the usual files. A configuration
// named by its paths has its own stream, so that a command on other files does not retire the cards of the usual deck.
// So does a directory with approved project servers.
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

// configStream returns the stream of a gateway. If the program brings servers of its own, their names are part of it.
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

// completeRow checks and completes a row that a program brings, after the rows before it.
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

// ResolveProgram returns the file that the command of a stdio row means in an environment, as "name=value". The error
// is for a file that does not exist or cannot be run.
func ResolveProgram(row config.Server, environ []string) (config.ProgramFile, error) {
	path, _, err := ResolveProcess(row, config.Settings{}, environ)
	if err != nil {
		return config.ProgramFile{}, err
	}
	return config.HashProgram(path)
}

// rowHash returns the configuration hash of a row that a program brings, for those who store something about it. Values
// of variables and headers may be secrets, and are not part of it.
func rowHash(row config.Server) string {
	var names []string
	for _, p := range row.Env {
		names = append(names, "env "+p.Name)
	}
	for _, p := range row.Headers {
		names = append(names, "header "+p.Name)
	}
	// texts always encode
	text, _ := json.Marshal([]any{row.ID, row.Type, row.Command, row.Args, row.Cwd, row.URL, names})
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// readSecretFile reads a file that holds one secret. The error names the kind of secret, and never its content.
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
