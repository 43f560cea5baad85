package admin

import (
	"context"
	"slices"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
)

// The values of LockDifference.Found: a definition changed, a definition is only on the server, a definition is only in
// the lockfile, or the server could not be listed.
const (
	lockDiffChanged    = "changed"
	lockDiffUnlocked   = "not in the lockfile"
	lockDiffNotListed  = "not listed any more"
	lockDiffListFailed = "could not be listed"
)

// A LockDifference is one difference between a server and the lockfile.
type LockDifference struct {
	Server drawbridge.ServerID `json:"server"`
	Part   string              `json:"part,omitempty"`
	Tool   string              `json:"tool,omitempty"`
	Found  string              `json:"found"`
	// Why is the reason why the server could not be listed. Difference describes how the definition changed. Each is
	// set only for its kind of difference.
	Why        string          `json:"why,omitempty"`
	Difference *DefinitionDiff `json:"difference,omitempty"`
}

// A LockComparison is the result of VerifyLockfile.
type LockComparison struct {
	File string
	// Differences are in configuration order of the servers. For each server, first come the definitions that it lists,
	// then the definitions that are only in the lockfile.
	Differences []LockDifference
	// Definitions is the number of definitions that the servers list.
	Definitions int
	// Unconfigured are the servers in the lockfile that are not in the person's configuration on this machine. It is
	// empty if LockQuery.Servers names servers.
	Unconfigured []drawbridge.ServerID
}

// VerifyLockfile starts and lists the servers that q selects, and compares the definitions that they send with the
// lockfile. It ignores the pinned definitions in the store. It changes neither the lockfile nor the pins.
func (r *Service) VerifyLockfile(ctx context.Context, run GatewayRunner, q LockQuery) (c LockComparison, err error) {
	if c.File, err = r.lockfilePath(q.File); err != nil {
		return c, err
	}
	locked, err := readLockfile(c.File)
	if err != nil {
		return c, err
	}
	all, err := listServers(ctx, run, q)
	if err != nil {
		return c, err
	}
	s, err := shield.New(shield.Options{NoCaps: true})
	if err != nil {
		return c, err
	}
	c.Differences, c.Definitions = compareWithLockfile(s, locked, all)
	if len(q.Servers) == 0 {
		c.Unconfigured = unconfiguredServers(locked, all)
	}
	return c, nil
}

// compareWithLockfile returns the differences between the listed servers and the lockfile, in the order of
// LockComparison.Differences. tools is the number of definitions that the servers list.
func compareWithLockfile(s *shield.Shield, locked []shield.LockedTool, all []serverDefinitions) (found []LockDifference,
	tools int) {
	found = []LockDifference{}
	for _, l := range all {
		if l.err != nil {
			found = append(found, LockDifference{Server: l.server, Found: lockDiffListFailed, Why: l.err.Error()})
			continue
		}
		left := map[string]shield.LockedTool{}
		for _, t := range locked {
			if t.Server == l.server {
				left[shield.PinLabel(t.Part, t.Tool)] = t
			}
		}
		for _, t := range l.definitions {
			tools++
			label := shield.PinLabel(t.part, t.Tool)
			was, ok := left[label]
			delete(left, label)
			switch {
			case !ok:
				found = append(found, LockDifference{Server: l.server, Part: t.part, Tool: t.Tool,
					Found: lockDiffUnlocked})
			case shield.Fingerprint(was.Definition) != shield.Fingerprint(t.Definition):
				diff := DiffDefinitions(s, was.Definition, t.Definition)
				found = append(found, LockDifference{Server: l.server, Part: t.part, Tool: t.Tool,
					Found: lockDiffChanged, Difference: &diff})
			}
		}
		for _, t := range locked {
			if _, ok := left[shield.PinLabel(t.Part, t.Tool)]; ok && t.Server == l.server {
				found = append(found, LockDifference{Server: l.server, Part: t.Part, Tool: t.Tool,
					Found: lockDiffNotListed})
			}
		}
	}
	return found, tools
}

// unconfiguredServers returns the servers in the lockfile that are not among the listed servers.
func unconfiguredServers(locked []shield.LockedTool, all []serverDefinitions) (ids []drawbridge.ServerID) {
	for _, t := range locked {
		known := slices.ContainsFunc(all, func(l serverDefinitions) bool { return l.server == t.Server })
		if !known && !slices.Contains(ids, t.Server) {
			ids = append(ids, t.Server)
		}
	}
	return ids
}
