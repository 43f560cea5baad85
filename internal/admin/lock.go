package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/gateway"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// A LockQuery selects a lockfile and the servers that are compared with it or written to it. A lockfile contains
// accepted definitions of tools. The zero value selects the configured lockfile and all servers of the person's own
// configuration.
type LockQuery struct {
	// File is the path of the lockfile; empty means the lockfile in the settings. Servers are the names of the servers;
	// empty means all.
	File    string
	Servers []string
	// Progress, if not nil, is called before each server is started and listed. done is the number of servers that have
	// been handled, and all is the number of all selected servers.
	Progress func(server drawbridge.ServerID, done, all int)
}

// A LockedDefinition is one line of a lockfile: the definition of a tool or another item of a server, and its hash.
type LockedDefinition struct {
	Server     drawbridge.ServerID `json:"server"`
	Part       string              `json:"part,omitempty"`
	Tool       string              `json:"tool"`
	Hash       string              `json:"hash"`
	Definition json.RawMessage     `json:"definition"`
}

// LockedDefinitions returns the lines of the lockfile at the path file. An empty path means the configured lockfile.
func (r *Service) LockedDefinitions(file string) ([]LockedDefinition, error) {
	path, err := r.lockfilePath(file)
	if err != nil {
		return nil, err
	}
	tools, err := readLockfile(path)
	if err != nil {
		return nil, err
	}
	all := make([]LockedDefinition, 0, len(tools))
	for _, t := range tools {
		all = append(all, LockedDefinition{t.Server, t.Part, t.Tool, shield.Fingerprint(t.Definition), t.Definition})
	}
	return all, nil
}

// lockfilePath returns file, or the path of the configured lockfile if file is empty. It returns a UserError if no
// lockfile is configured.
func (r *Service) lockfilePath(file string) (string, error) {
	if file != "" {
		return file, nil
	}
	s, err := config.LoadSettings(r.o.ConfigOptions)
	if err != nil {
		return "", err
	}
	path, _, err := config.LockfilePath(r.o.ConfigOptions, s)
	if err == nil && path == "" {
		err = UserError("No lockfile is configured: name one with --file.")
	}
	return path, err
}

// readLockfile returns the definitions in the lockfile at path.
func readLockfile(path string) ([]shield.LockedTool, error) {
	text, err := config.ReadLockfile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no lockfile exists at %s yet (drawbridge lock write creates it)", path)
	}
	if err != nil {
		return nil, err
	}
	return shield.ParseLockfile(path, text)
}

// serverDefinitions contains the definitions that a server has listed, or the error if the server could not be started
// or listed.
type serverDefinitions struct {
	server      drawbridge.ServerID
	definitions []lockableDefinition
	err         error
	// missingParts are the parts, such as prompts, that could not be listed although the server was started; see
	// shield.PinnedParts. missingCause is the reason.
	missingParts []string
	missingCause string
}

// A lockableDefinition is the definition of a tool, or of another item of a server, that a lockfile may contain.
type lockableDefinition struct {
	part string
	shield.ListedTool
	// pinned is the accepted definition, which clients get. changed reports whether the server now sends a different
	// definition.
	pinned  json.RawMessage
	changed bool
}

// listServers starts the servers that q selects, and returns the definitions that each of them lists.
func listServers(ctx context.Context, run GatewayRunner, q LockQuery) (all []serverDefinitions, err error) {
	err = run(ctx, func(ctx context.Context, g *gateway.Gateway) error {
		rows, err := lockableRows(g.Config(), q.Servers)
		if err != nil {
			return err
		}
		for i, row := range rows {
			if q.Progress != nil {
				q.Progress(row.ID, i, len(rows))
			}
			l := serverDefinitions{server: row.ID}
			var said drawbridge.Listing
			if said, l.err = g.Mount(ctx, row.ID); l.err == nil {
				l.definitions, l.err = lockableDefinitions(ctx, g, row, said)
				l.missingParts, l.missingCause = missingListParts(g, said)
			}
			all = append(all, l)
		}
		return nil
	})
	return all, err
}

// missingListParts returns the parts of a server's listing, such as prompts, whose request failed and for which no
// earlier list is available. It also returns the fault of the server, which is the reason.
func missingListParts(g *gateway.Gateway, said drawbridge.Listing) (parts []string, fault string) {
	for _, s := range g.Status() {
		if s.Server == said.Server && s.Phase == drawbridge.Ready {
			fault = s.Fault
		}
	}
	if len(said.Prompts) == 0 && strings.Contains(fault, "list prompts: ") {
		parts = append(parts, shield.PartPrompt)
	}
	if len(said.Templates) == 0 && strings.Contains(fault, "list resourceTemplates: ") {
		parts = append(parts, shield.PartTemplate)
	}
	return parts, fault
}

// lockableRows returns the rows with these names. The lockfile covers only rows of the person's own configuration, so
// it returns a UserError for any other name. Without names it returns all rows of the person's own configuration,
// including invalid rows that cannot be started.
func lockableRows(set config.Configuration, names []string) ([]config.Server, error) {
	rows := slices.DeleteFunc(set.Mountable(), func(row config.Server) bool { return !gateway.LockfileCovers(row) })
	if len(names) == 0 {
		for _, row := range set.Servers {
			first := !slices.ContainsFunc(rows, func(r config.Server) bool { return r.ID == row.ID })
			if row.Phase == drawbridge.Refused && gateway.LockfileCovers(row) && first {
				rows = append(rows, row)
			}
		}
		return rows, nil
	}
	var some []config.Server
	for _, name := range names {
		i := slices.IndexFunc(rows, func(row config.Server) bool { return string(row.ID) == name })
		if i < 0 {
			return nil, userErrorf(
				"Server %q is not one of your own that is in force (drawbridge mcp list).", name)
		}
		some = append(some, rows[i])
	}
	return some, nil
}

// lockableDefinitions returns the definitions of tools and other items in a listing, each with the definition that is
// pinned in the store.
func lockableDefinitions(ctx context.Context, g *gateway.Gateway, row config.Server, said drawbridge.Listing) (
	all []lockableDefinition, err error) {
	for _, part := range shield.PinnedParts() {
		pins, err := g.Pins(ctx, row, part)
		if err != nil {
			return nil, err
		}
		for _, l := range gateway.PinnableItems(said, part) {
			t := lockableDefinition{part, l, l.Definition, false}
			if pin, ok := pins[l.Tool]; ok {
				t.pinned, t.changed = pin.Definition, pin.Pending != nil
			}
			all = append(all, t)
		}
	}
	return all, nil
}

// An UnlistedServer is a server that could not be listed when a lockfile was written, so its lines in the lockfile did
// not change. If Incomplete is set, only a part of the server could not be listed, for example its prompts. Then only
// the lines of that part did not change.
type UnlistedServer struct {
	Server     drawbridge.ServerID `json:"server"`
	Incomplete bool                `json:"incomplete,omitempty"`
	Why        string              `json:"why"`
}

// A LockReport is the result of WriteLockfile.
type LockReport struct {
	File string `json:"file"`
	// Written reports whether the file was written. The file is not written if no server could be listed.
	Written bool `json:"written"`
	// Servers is the number of servers that were listed. Definitions is the number of their definitions that were
	// written to the file.
	Servers     int `json:"servers"`
	Definitions int `json:"definitions"`
	// Waiting is the number of items whose changed definition a person has not accepted. For these items the file has
	// the pinned definition.
	Waiting  int              `json:"waiting"`
	Unlisted []UnlistedServer `json:"unlisted"`
	// LeftOut are definitions that were not written, because different JSON parsers may read them differently.
	LeftOut []LockedDefinition `json:"left_out"`
}

// WriteLockfile starts and lists the servers that q selects, and writes their pinned definitions to the lockfile. Lines
// of other servers do not change. The report is also valid after an error, and names the servers that could not be
// listed.
func (r *Service) WriteLockfile(ctx context.Context, run GatewayRunner, q LockQuery) (LockReport, error) {
	report := LockReport{Unlisted: []UnlistedServer{}, LeftOut: []LockedDefinition{}}
	var err error
	if report.File, err = r.lockfilePath(q.File); err != nil {
		return report, err
	}
	all, err := listServers(ctx, run, q)
	if err != nil {
		return report, err
	}
	if len(all) == 0 {
		return report, errors.New("nothing was written: your own configuration has no servers (drawbridge mcp list)")
	}
	whole := map[drawbridge.ServerID]serverDefinitions{}
	var tools []shield.LockedTool
	for _, l := range all {
		switch {
		case l.err != nil:
			report.Unlisted = append(report.Unlisted, UnlistedServer{Server: l.server, Why: l.err.Error()})
			continue
		case len(l.missingParts) > 0:
			report.Unlisted = append(report.Unlisted, UnlistedServer{l.server, true, l.missingCause})
		}
		whole[l.server] = l
		for _, t := range l.definitions {
			if t.changed {
				report.Waiting++
			}
			tools = append(tools, shield.LockedTool{Server: l.server, Part: t.part, Tool: t.Tool, Definition: t.pinned})
		}
	}
	if len(whole) == 0 {
		return report, nil
	}
	leftOut, err := r.replaceLocked(report.File, whole, tools)
	if err != nil {
		return report, err
	}
	for _, t := range leftOut {
		report.LeftOut = append(report.LeftOut,
			LockedDefinition{t.Server, t.Part, t.Tool, shield.Fingerprint(t.Definition), t.Definition})
	}
	report.Written, report.Servers, report.Definitions = true, len(whole), len(tools)-len(leftOut)
	return report, nil
}

// replaceLocked replaces the lines of the listed servers in the lockfile with the definitions in tools. It keeps the
// lines of parts that could not be listed. It returns the definitions that a lockfile cannot contain.
func (r *Service) replaceLocked(path string, listed map[drawbridge.ServerID]serverDefinitions,
	tools []shield.LockedTool) (leftOut []shield.LockedTool, err error) {
	err = r.o.AdminRecorder.Run(gateway.AdminAction{Command: "lock write", Subject: path}, func() (err error) {
		leftOut, err = gateway.EditLockfile(path, func(said []shield.LockedTool) []shield.LockedTool {
			stay := slices.DeleteFunc(said, func(s shield.LockedTool) bool {
				l, ok := listed[s.Server]
				return ok && !slices.Contains(l.missingParts, s.Part)
			})
			return append(stay, tools...)
		})
		return err
	})
	return leftOut, err
}
