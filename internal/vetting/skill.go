package vetting

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"

	"github.com/drawbridge-mcp/drawbridge/deck"
	"github.com/drawbridge-mcp/drawbridge/internal/rawjson"
)

// A SkillStage is a Stage that also checks skills.
type SkillStage interface {
	// ApplyToSkill returns an entry of a list of skills in the form that may be shown, or nil to hide the entry. An
	// error hides the whole list.
	ApplyToSkill(ctx context.Context, server deck.Server, entry json.RawMessage) (json.RawMessage, error)
}

var _ SkillStage = (*Sanitiser)(nil)

// VetSkill passes an entry of a list of skills through the stages that implement [SkillStage]. It returns an error if a
// stage returns one, or if no stage handles skills.
func (c Chain) VetSkill(ctx context.Context, server deck.Server, entry json.RawMessage) (_ json.RawMessage, err error) {
	looked := false
	for _, stage := range c {
		if s, ok := stage.(SkillStage); ok && entry != nil {
			looked = true
			if entry, err = s.ApplyToSkill(ctx, server, entry); err != nil {
				return nil, err
			}
		}
	}
	if !looked {
		return nil, errors.New("vet a skill: no stage handles skills")
	}
	return entry, nil
}

// maxSkills is the maximum number of cached skills, and maxSkillBytes is their maximum total size. The cache is limited
// because a server may send other skills in each list.
const (
	maxSkills     = 4096
	maxSkillBytes = 32 << 20
)

// ApplyToSkill implements [SkillStage]. A client reads a skill by its URI. If sanitising changes the URI, the skill is
// hidden.
func (s *Sanitiser) ApplyToSkill(ctx context.Context, m deck.Server, entry json.RawMessage) (json.RawMessage, error) {
	key := sha256.Sum256([]byte(rulesID(m) + "\x00" + string(entry)))
	s.mu.Lock()
	shown, ok := s.skills.Get(key)
	s.mu.Unlock()
	if ok {
		return shown, nil
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l, err := s.sanitiseItem(m, partSkills, 0, entry)
	if err != nil {
		return nil, err
	}
	shown = append(json.RawMessage(nil), entry...)
	if len(l.Definition) > 0 {
		shown = l.Definition
	}
	if l.LeftOut != "" || rawjson.GetString(shown, "uri") != rawjson.GetString(entry, "uri") {
		shown = nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skills.Remove(key) // another request may have added the key meanwhile
	s.skills.Add(key, shown)
	for s.skillBytes += len(shown); s.skillBytes > maxSkillBytes && s.skills.Len() > 1; {
		s.skills.RemoveOldest()
	}
	return shown, nil
}
