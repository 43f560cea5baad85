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

// PinKeyOf returns where the pins of a row's tools are kept: by the file that it stands in, whichever link leads there, and
// its name there. A row that stands in no file is one of a program's own, which says all of what it is.
func PinKeyOf(row config.Server) store.PinKey {
	if !filepath.IsAbs(row.Origin.Path) {
		return store.PinKey{Origin: "row " + row.Hash, Server: row.ID}
	}
	return store.PinKey{Origin: resolveLinks(row.Origin.Path), Server: row.ID}
}

// MoveLinkedPins has pins that an earlier release kept by the path of a link count for the file that it leads to, where
// that has none of the server. The error is the store's.
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

// newPinChecker makes what holds tools against what they said before, and against the lockfile of the person's own
// configuration.
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

// resolveLockfilePath is where the lockfile of a configuration is: nowhere for a program's own servers, beside which
// no files are looked for.
func resolveLockfilePath(c Config, s config.Settings) (path string, named bool, err error) {
	if !c.readsFiles() {
		return "", false, nil
	}
	return config.LockfilePath(config.Options{Dir: c.Dir, LookupEnv: c.LookupEnv}, s)
}

// LockfilePath says where the lockfile of a configuration is, whether it is there or not; empty where there is no
// place for one, or the settings cannot be read.
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

// recheckPins has another look at what servers list, where a person may have decided about it since, and keeps how all
// of it is.
func (g *Gateway) recheckPins(ctx context.Context) error {
	g.shared.pinChecker.InvalidateStates()
	ids := g.pinStage.ServersToRecheck()
	// what was just looked at may not be on the deck yet: to look again waits for it
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

// AcceptCommand is what a person types to accept what has that label and changed.
func AcceptCommand(id drawbridge.ServerID, label string) string {
	return vetting.AcceptCommand(id, label)
}

// LockfileCovers says whether a lockfile speaks of a row. It does not of what a project brings: the file is the
// person's own, and two projects may each have a server of one name.
func LockfileCovers(row config.Server) bool { return row.Origin.Kind != config.OriginProject }

// EditLockfile changes a lockfile: change is given what it says, and says what it shall. One that is not there says
// nothing, and is made. What cannot be written to a lockfile is given back: definitions that two readers could read in
// two ways. The error names the file, and the line that is wrong in it.
func EditLockfile(path string, change func(said []shield.LockedTool) []shield.LockedTool) (leftOut []shield.LockedTool,
	err error) {
	return vetting.EditLockfile(path, change)
}

// Pins gives what is pinned of a part of a row's server, see shield.PinnedParts, by name. The error is the store's.
func (g *Gateway) Pins(ctx context.Context, row config.Server, part string) (map[string]shield.Pin, error) {
	place := PinKeyOf(row)
	place.Part = part
	return g.shared.db.Pins(ctx, place)
}

// PinnableItems gives what a listing has of a part, by the names under which it is pinned; of two with one name, the
// first. Of a server without instructions it gives none.
func PinnableItems(l drawbridge.Listing, part string) []shield.ListedTool {
	if part == shield.PartInstructions && l.Instructions == "" {
		return nil
	}
	return vetting.PinnableItems(l, part)
}
