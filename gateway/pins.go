package gateway

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"sync"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/config"
	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/shield"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
	"github.com/drawbridge-mcp/drawbridge/internal/vetting"
)

// PinKeyOf returns the key under which the pins of a server's tools are stored. It consists of the server's name and
// the path of the file that configures the server, with links resolved. If the server is not configured in a file, the
// configuration hash replaces the path.
func PinKeyOf(row config.Server) store.PinKey {
	if !filepath.IsAbs(row.Origin.Path) {
		return store.PinKey{Origin: "row " + row.Hash, Server: row.ID}
	}
	return store.PinKey{Origin: resolveLinks(row.Origin.Path), Server: row.ID}
}

// MoveLinkedPins moves pins of servers whose configuration file is reached by a symbolic link. Earlier releases stored
// these pins under the path of the link; the new key has the path of the link's target. A server that already has pins
// under the new key keeps them. The error is an error of the store.
func MoveLinkedPins(ctx context.Context, db *store.DB, rows []config.Server) error {
	for _, row := range rows {
		to := PinKeyOf(row)
		from := store.PinKey{Origin: row.Origin.Path, Server: row.ID}
		if !filepath.IsAbs(from.Origin) || from == to {
			continue
		}
		for _, part := range shield.PinnedParts() {
			from.Part, to.Part = part, part
			if err := db.MovePins(ctx, from, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// newPinChecker returns a checker that compares the tools in a listing with their pinned definitions and with the
// user's lockfile.
func newPinChecker(c Config, s config.Settings, db *store.DB) (*vetting.PinChecker, error) {
	var o vetting.PinOptions
	var err error
	if o.LockfilePath, o.LockfileRequired, err = resolveLockfilePath(c, s); err != nil {
		return nil, err
	}
	made := sync.OnceValues(func() (*shield.Shield, error) { return shield.New(shield.Options{NoCaps: true}) })
	return vetting.NewPinChecker(db, func(before, after json.RawMessage) bool {
		sh, err := made()
		return err == nil && sh.IsCosmetic(before, after)
	}, o), nil
}

// resolveLockfilePath returns the path of the lockfile, or "" if no configuration files are read. named reports whether
// the settings name the file.
func resolveLockfilePath(c Config, s config.Settings) (path string, named bool, err error) {
	if !c.readsFiles() {
		return "", false, nil
	}
	return config.LockfilePath(config.Options{Dir: c.Dir, LookupEnv: c.LookupEnv}, s)
}

// LockfilePath returns the path of the lockfile of a configuration, whether the file exists or not. It returns "" if c
// does not read configuration files, or if the settings cannot be read.
func LockfilePath(c Config) string {
	s, err := loadSettings(c)
	if err != nil {
		return ""
	}
	path, _, err := resolveLockfilePath(c, s)
	if err != nil {
		return ""
	}
	return path
}

// recheckPins vets and enrols listings again, and stores the results. It selects the listings with a changed definition
// that a person may have accepted or rejected since the last check.
func (g *Gateway) recheckPins(ctx context.Context) error {
	g.shared.pinChecker.InvalidateStates()
	ids := g.pinStage.ServersToRecheck()
	// Servers with held definitions on the deck are vetted again too. A listing that was just vetted may not be on the
	// deck yet; vetting it again waits until it is on the deck.
	for _, m := range g.deck.ServerSummaries() {
		if slices.ContainsFunc(m.Notes, func(n deck.VettingNote) bool { return n.Action == "held" }) {
			ids = append(ids, m.Server)
		}
	}
	var err error
	if len(ids) > 0 {
		err = g.enroller.reenrol(ctx, ids...)
	}
	g.saveVetted(ctx)
	return err
}

// AcceptCommand returns the command line that a person runs to accept the changed item of a server that has this label.
func AcceptCommand(id drawbridge.ServerID, label string) string {
	return vetting.AcceptCommand(id, label)
}

// LockfileCovers reports whether the lockfile applies to a server. It does not apply to servers that a project
// configures. The lockfile belongs to the user, and two projects may have different servers of the same name.
func LockfileCovers(row config.Server) bool { return row.Origin.Kind != config.OriginProject }

// EditLockfile rewrites the lockfile at path. change receives the tools in the lockfile and returns the new tools. A
// missing file counts as empty and is created. leftOut holds the tools that cannot be in a lockfile, because two
// parsers may read their definitions differently. The error names the file and the invalid line.
func EditLockfile(path string, change func(said []shield.LockedTool) []shield.LockedTool) (leftOut []shield.LockedTool,
	err error) {
	return vetting.EditLockfile(path, change)
}

// Pins returns the pins of one part of a server's listing, such as the tools. The keys of the map are the names of the
// items. See shield.PinnedParts for the parts. The error is an error of the store.
func (g *Gateway) Pins(ctx context.Context, row config.Server, part string) (map[string]shield.Pin, error) {
	place := PinKeyOf(row)
	place.Part = part
	return g.shared.db.Pins(ctx, place)
}

// PinnableItems returns the items of one part of a listing, such as the tools, with the names under which they are
// pinned. If two items have the same name, only the first is returned. For a server without instructions,
// PartInstructions has no items.
func PinnableItems(l drawbridge.Listing, part string) []shield.ListedTool {
	if part == shield.PartInstructions && l.Instructions == "" {
		return nil
	}
	return vetting.PinnableItems(l, part)
}
