"""Formats: conversion of bytes to Arrow and back."""
