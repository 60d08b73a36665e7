#!/bin/sh
# fairduel-backup STORE FOLDER [KEEP]: copies a store into a new folder, checks the copy, keeps the last KEEP (14).
set -eu
store=$1 folder=$2 keep=${3:-14}
mkdir -p "$folder"
rm -rf "$folder"/*.part
new=$folder/$(date -u +%Y-%m-%dT%H%M%SZ)
fairduel store backup "$store" "$new.part"
mv "$new.part" "$new"
ls -d "$folder"/????-??-??T??????Z | sort -r | tail -n +$((keep + 1)) | xargs -r -d '\n' rm -r
