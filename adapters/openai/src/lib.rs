//! hango-openai
