package gateway

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/drawbridge-mcp/drawbridge"
	"github.com/drawbridge-mcp/drawbridge/cards"
	"github.com/drawbridge-mcp/drawbridge/internal/store"
)

const (
	// scriptRunLease is the time after which a run whose process does not extend its lease may be taken by another one.
	scriptRunLease = 5 * time.Second
	// scriptRunPoll is how often a caller that resumes a run looks whether the lease has expired.
	scriptRunPoll = 200 * time.Millisecond
	// journalKeyName is the name in the vault of the key that encrypts journals, and journalKeySize is its size in bytes.
	journalKeyName = "scripts/journal-key"
	journalKeySize = 32
)

// A scriptRuns keeps the runs of scripts in the store, encrypted with a key in the vault.
type scriptRuns struct{ shared *Shared }

var _ cards.RunStore = scriptRuns{}

// New implements [cards.RunStore].
func (s scriptRuns) New(run cards.SavedRun) cards.RunJournal {
	return &scriptJournal{runs: s, run: run, holder: rand.Text()}
}

// Resume implements [cards.RunStore].
func (s scriptRuns) Resume(ctx context.Context, run cards.SavedRun) (cards.SavedRun, cards.RunJournal, [][]byte, error) {
	j := &scriptJournal{runs: s, holder: rand.Text()}
	found, sealed, err := s.take(ctx, run, j.holder)
	if err != nil {
		return run, nil, nil, err
	}
	j.run = cards.SavedRun{ID: found.ID, Owner: found.Owner, Call: found.Call}
	entries, err := j.open(ctx, found, sealed)
	if err != nil {
		return run, nil, nil, errors.Join(err, s.shared.db.ReleaseScriptRun(ctx, found.ID, j.holder))
	}
	j.count = len(entries)
	j.hold()
	return j.run, j, entries, nil
}

// take takes the run in the store. It waits until the lease of a process that ended has expired.
func (s scriptRuns) take(ctx context.Context, run cards.SavedRun, holder string) (store.ScriptRun, [][]byte, error) {
	poll := time.NewTicker(scriptRunPoll)
	defer poll.Stop()
	for end := time.Now().Add(scriptRunLease + time.Second); ; {
		found, sealed, err := s.shared.db.TakeScriptRun(ctx, run.Owner, run.ID, run.Call, holder, scriptRunLease)
		if f, ok := errors.AsType[*drawbridge.Fault](err); !ok || f.Code != drawbridge.Transient || time.Now().After(end) {
			return found, sealed, err
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return store.ScriptRun{}, nil, context.Cause(ctx)
		}
	}
}

// Interrupted implements [cards.RunStore].
func (s scriptRuns) Interrupted(ctx context.Context, owner string) (ids []string, err error) {
	runs, err := s.shared.db.InterruptedRuns(ctx, owner)
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	return ids, err
}

// A scriptJournal is the journal of one run. The first Append stores the run; from then on a goroutine extends its lease
// until Close.
type scriptJournal struct {
	runs   scriptRuns
	run    cards.SavedRun
	holder string

	mu sync.Mutex
	// aead encrypts the entries; nil until the first use. count is the number of entries in the store.
	aead  cipher.AEAD
	count int
	// stop ends the goroutine that extends the lease; nil if the run is not stored. holding waits for it.
	stop    context.CancelFunc
	holding sync.WaitGroup
}

// cipher returns the cipher for the entries. It reads the key at the first call.
func (j *scriptJournal) cipher(ctx context.Context) (cipher.AEAD, error) {
	if j.aead != nil {
		return j.aead, nil
	}
	key, err := randomInVault(ctx, j.runs.shared.vault, journalKeyName, journalKeySize, true)
	if err != nil {
		return nil, fmt.Errorf("read the key of journals: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	j.aead, err = cipher.NewGCMWithRandomNonce(block)
	return j.aead, err
}

// binding is what the encryption of an entry is bound to: the run and the place of the entry in it.
func (j *scriptJournal) binding(place string) []byte {
	return []byte("script run " + j.run.Owner + " " + j.run.ID + " " + place)
}

// requestPlace is the place of the request among the entries.
const requestPlace = "request"

// Append implements [sandbox.Journal].
func (j *scriptJournal) Append(ctx context.Context, entries ...[]byte) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	aead, err := j.cipher(ctx)
	if err != nil {
		return err
	}
	sealed := make([][]byte, len(entries))
	for i, entry := range entries {
		sealed[i] = aead.Seal(nil, nil, entry, j.binding(strconv.Itoa(j.count+i)))
	}
	db := j.runs.shared.db
	if j.stop == nil {
		err = db.AddScriptRun(ctx, store.ScriptRun{ID: j.run.ID, Owner: j.run.Owner, Call: j.run.Call, Holder: j.holder,
			Request: aead.Seal(nil, nil, j.run.Input, j.binding(requestPlace))}, sealed, scriptRunLease)
	} else {
		err = db.AppendScriptRun(ctx, j.run.ID, j.holder, j.count, sealed, scriptRunLease)
	}
	if err != nil {
		return err
	}
	j.count += len(entries)
	if j.stop == nil {
		j.hold()
	}
	return nil
}

// open decrypts a run from the store.
func (j *scriptJournal) open(ctx context.Context, r store.ScriptRun, sealed [][]byte) (entries [][]byte, err error) {
	aead, err := j.cipher(ctx)
	if err != nil {
		return nil, err
	}
	if j.run.Input, err = aead.Open(nil, nil, r.Request, j.binding(requestPlace)); err != nil {
		return nil, errors.New("the stored run cannot be decrypted with the key in the vault")
	}
	if !json.Valid(j.run.Input) {
		return nil, errors.New("the stored run cannot be read")
	}
	for i, text := range sealed {
		entry, err := aead.Open(nil, nil, text, j.binding(strconv.Itoa(i)))
		if err != nil {
			return nil, errors.New("the stored run cannot be decrypted with the key in the vault")
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// hold extends the lease of the run until Close. If that fails, another process may take the run; then the next Append
// returns an error.
func (j *scriptJournal) hold() {
	ctx, stop := context.WithCancel(j.runs.shared.closing)
	j.stop = stop
	j.holding.Go(func() {
		renew := time.NewTicker(scriptRunLease / 4)
		defer renew.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-renew.C:
			}
			_ = j.runs.shared.db.HoldScriptRun(ctx, j.run.ID, j.holder, scriptRunLease)
		}
	})
}

// Close implements [cards.RunJournal].
func (j *scriptJournal) Close(ctx context.Context, ended bool) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stop == nil {
		return nil
	}
	j.stop()
	j.holding.Wait()
	if ended {
		return j.runs.shared.db.DropScriptRun(ctx, j.run.ID, j.holder)
	}
	return j.runs.shared.db.ReleaseScriptRun(ctx, j.run.ID, j.holder)
}
