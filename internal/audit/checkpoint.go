package audit

import (
	"crypto/ed25519"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"time"
)

// A Checkpoint is a signed statement that a certain record was the last record of a hash chain at the time At. If a
// record up to that one is changed later, the chain no longer matches the checkpoint.
type Checkpoint struct {
	Stream string
	// Seq is the number of the last record at that time, and Hash is the hash of that record.
	Seq  uint64
	Hash [32]byte
	At   time.Time
	// Signer is the public key. Signature is the Ed25519 signature of the other members with that key.
	Signer, Signature []byte
}

// signedBytes returns the bytes that are signed: a line that names the format, Seq, At, Hash, and Stream. Seq and At
// (in milliseconds since 1970) are eight bytes each, most significant byte first.
func (c Checkpoint) signedBytes() []byte {
	text := []byte("drawbridge audit checkpoint 1\n")
	text = binary.BigEndian.AppendUint64(text, c.Seq)
	text = binary.BigEndian.AppendUint64(text, uint64(c.At.UnixMilli()))
	text = append(text, c.Hash[:]...)
	return append(text, c.Stream...)
}

// Sign returns a copy of the checkpoint with the signer and the signature set.
func (c Checkpoint) Sign(key ed25519.PrivateKey) Checkpoint {
	c.Signer = key.Public().(ed25519.PublicKey)
	c.Signature = ed25519.Sign(key, c.signedBytes())
	return c
}

// Verify returns an error if Signature is not a valid signature by Signer.
func (c Checkpoint) Verify() error {
	if len(c.Signer) != ed25519.PublicKeySize || !ed25519.Verify(c.Signer, c.signedBytes(), c.Signature) {
		return fmt.Errorf("checkpoint at record %d: its signature is not its signer's", c.Seq)
	}
	return nil
}

// ParsePublicKey parses a public key in the format of [FormatPublicKey].
func ParsePublicKey(text string) (ed25519.PublicKey, error) {
	b, err := hex.DecodeString(text)
	if err != nil || len(b) != ed25519.PublicKeySize {
		return nil, errors.New("a public key is 64 hexadecimal digits")
	}
	return b, nil
}

// FormatPublicKey returns the public key as hexadecimal digits.
func FormatPublicKey(key ed25519.PublicKey) string { return hex.EncodeToString(key) }
